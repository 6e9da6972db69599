package kafka

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/front/kafka/share"
)

// DeleteGroups, 0-3. Each group is deleted for itself, if it is empty.
func (s *Server) deleteGroups(ctx context.Context, _ *conn.Request, in *kmsg.DeleteGroupsRequest) (kmsg.Response, error) {
	why := make([]refusal.Reason, len(in.Groups))
	var wg sync.WaitGroup
	wg.Add(len(in.Groups))
	shares := make([]error, len(in.Groups))
	for i, id := range in.Groups {
		if s.opts.Shares != nil && s.opts.Shares.Exists(id) {
			shares[i] = s.opts.Shares.Delete(ctx, id)
			wg.Done()
			continue
		}
		s.opts.Groups.Delete(id, func(r refusal.Reason) {
			why[i] = r
			wg.Done()
		})
	}
	wg.Wait() // the journal answers every append, also when it stops
	resp := kmsg.NewPtrDeleteGroupsResponse()
	for i, id := range in.Groups {
		out := kmsg.NewDeleteGroupsResponseGroup()
		out.Group, out.ErrorCode, out.ErrorMessage = id, codes.ForReason(why[i]), codes.ReasonText(why[i])
		if shares[i] != nil {
			out.ErrorCode, out.ErrorMessage = share.Code(shares[i])
		}
		resp.Groups = append(resp.Groups, out)
	}
	return resp, nil
}
