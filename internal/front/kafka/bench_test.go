package kafka

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// BenchmarkFetchSession is one turn of a consumer of n partitions of which one has
// a new batch: produce, then fetch.
func BenchmarkFetchSession(b *testing.B) {
	for _, n := range []int32{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			br := startBroker(b)
			id := br.topic("t", n).ID
			c := br.dial()
			var all []int32
			for i := range n {
				all = append(all, i)
			}
			req := fetchRequest("", all...)
			req.Topics[0].TopicID, req.SessionEpoch = id, 0
			sid := call[*kmsg.FetchResponse](c, req, 13).SessionID
			recs := batch(b, records.None, 1, values("x")...)
			b.ResetTimer()
			for i := range b.N {
				produced(c, "t", 0, append(model.Batch(nil), recs...))
				next := fetchRequest("", 0)
				next.Topics[0].TopicID, next.SessionID, next.SessionEpoch = id, sid, int32(i+1)
				next.Topics[0].Partitions[0].FetchOffset = int64(i)
				resp := call[*kmsg.FetchResponse](c, next, 13)
				if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions[0].RecordBatches) == 0 {
					b.Fatalf("turn %d: %+v", i, resp)
				}
			}
		})
	}
}
