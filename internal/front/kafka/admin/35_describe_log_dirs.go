package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// DescribeLogDirs, 1-5: the one data directory, its room, and the size of the
// partitions that are asked for (null: all).
func (h *Handlers) describeLogDirs(_ context.Context, _ *conn.Request, in *kmsg.DescribeLogDirsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir = h.LogDir
	dir.TotalBytes, dir.UsableBytes = -1, -1
	if h.Space != nil {
		dir.TotalBytes, dir.UsableBytes = h.Space()
	}
	if in.Topics == nil {
		for _, t := range h.Topics.All() {
			all := make([]int32, len(t.Partitions))
			for i := range all {
				all[i] = int32(i)
			}
			dir.Topics = append(dir.Topics, sizes(t, all))
		}
	}
	for _, q := range in.Topics {
		if t, ok := h.Topics.ByName(q.Topic); ok {
			dir.Topics = append(dir.Topics, sizes(t, q.Partitions))
		}
	}
	resp.Dirs = append(resp.Dirs, dir)
	return resp, nil
}

func sizes(t *topics.Topic, indexes []int32) kmsg.DescribeLogDirsResponseDirTopic {
	out := kmsg.NewDescribeLogDirsResponseDirTopic()
	out.Topic = t.Name
	for _, i := range indexes {
		if p, ok := t.Partition(i); ok {
			q := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
			q.Partition, q.Size = i, p.Watermarks().Bytes
			out.Partitions = append(out.Partitions, q)
		}
	}
	return out
}
