package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/quota"
)

// throttle counts a request against its client's quotas and says how long the
// connection is to be muted: as long as the longest of them asks. resp is nil
// where the client expects no answer.
func (s *Server) throttle(r *conn.Request, resp kmsg.Response) time.Duration {
	if s.opts.Topics.Quotas().Empty() {
		return 0
	}
	user, client := r.User(), r.ClientID
	wait := s.quotas.Charge(quota.Request, user, client, 100*r.Busy().Seconds())
	switch r.Key {
	case keyProduce:
		wait = max(wait, s.quotas.Charge(quota.Produce, user, client, float64(r.Size)))
	case keyFetch:
		if f, ok := resp.(*fetchResponse); ok {
			wait = max(wait, s.quotas.Charge(quota.Fetch, user, client, float64(f.bytes())))
		}
	case keyCreateTopics, keyDeleteTopics, keyCreatePartitions:
		wait = max(wait, s.quotas.Owed(quota.Mutation, user, client))
	}
	return wait
}

// The keys whose handlers count partitions (package admin).
const (
	keyCreateTopics     = 19
	keyDeleteTopics     = 20
	keyCreatePartitions = 37
)

// bytes is the size of the records in the answer.
func (r *fetchResponse) bytes() (n int) {
	for i := range r.parts {
		n += r.parts[i].found.Bytes
	}
	return n
}
