package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// UpdateFeatures, 0-2: levels come with the release, so only the level in use is
// accepted. v2 has one error for all.
func (h *Handlers) updateFeatures(_ context.Context, r *conn.Request, in *kmsg.UpdateFeaturesRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrUpdateFeaturesResponse()
	for _, u := range in.FeatureUpdates {
		err := h.checkFeature(u.Feature, u.MaxVersionLevel)
		out := kmsg.NewUpdateFeaturesResponseResult()
		out.Feature, out.ErrorCode, out.ErrorMessage = u.Feature, codes.For(r.Key, err), codes.Text(err)
		resp.Results = append(resp.Results, out)
		if r.Version >= 2 && err != nil && resp.ErrorCode == codes.None {
			resp.ErrorCode, resp.ErrorMessage = out.ErrorCode, out.ErrorMessage
		}
	}
	return resp, nil
}

func (h *Handlers) checkFeature(name string, level int16) error {
	for _, f := range h.Features {
		switch {
		case f.Name == name && f.Level == level:
			return nil
		case f.Name == name:
			return codes.Errorf(codes.InvalidUpdateVersion,
				"feature %s is at level %d and cannot be set to %d: levels come with the release of the broker", name, f.Level, level)
		}
	}
	return codes.Errorf(codes.InvalidUpdateVersion, "feature %q is not supported by this broker", name)
}
