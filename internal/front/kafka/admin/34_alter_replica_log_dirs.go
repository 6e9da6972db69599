package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// AlterReplicaLogDirs, 1-2: there is one data directory, so partitions stay where
// they are; any other directory is LOG_DIR_NOT_FOUND.
func (h *Handlers) alterReplicaLogDirs(_ context.Context, r *conn.Request, in *kmsg.AlterReplicaLogDirsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrAlterReplicaLogDirsResponse()
	for _, d := range in.Dirs {
		for _, t := range d.Topics {
			out := kmsg.NewAlterReplicaLogDirsResponseTopic()
			out.Topic = t.Topic
			for _, index := range t.Partitions {
				err := h.checkPartition(t.Topic, index)
				if err == nil && d.Dir != h.LogDir {
					err = codes.Errorf(codes.LogDirNotFound, "%q is not the data directory", d.Dir)
				}
				p := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
				p.Partition, p.ErrorCode = index, codes.For(r.Key, err)
				out.Partitions = append(out.Partitions, p)
			}
			resp.Topics = append(resp.Topics, out)
		}
	}
	return resp, nil
}
