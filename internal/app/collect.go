package app

import (
	"errors"
	"runtime"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/obs/expo"
	"github.com/daybook-mq/daybook/internal/storage/journal"
)

// collect fills metrics, at each scrape.
func (b *Broker) collect(e expo.Emitter) {
	e.Value("daybook_build_info", 1, b.o.Version, runtime.Version())
	e.Value("daybook_uptime_seconds", time.Since(b.started).Seconds())
	e.Value("daybook_sync_mode", 1, string(b.o.Config.Sync.Mode))
	serving := b.serving.Load()
	e.Value("daybook_serving", number(serving))
	if !serving { // the parts are not all there
		return
	}
	b.collectStore(e)
	b.collectKafka(e)
	topics, partitions := b.topics.Count()
	e.Value("daybook_topics", float64(topics))
	e.Value("daybook_partitions", float64(partitions))
	b.collectGroups(e)
	b.collectShares(e)
}

func (b *Broker) collectStore(e expo.Emitter) {
	s := b.store.Stats()
	e.Value("daybook_tail_bytes", float64(s.TailBytes))
	e.Value("daybook_segment_written_bytes_total", float64(s.WrittenSegmentBytes))
	e.Value("daybook_journal_files_retired_total", float64(s.FlushedFiles), "flushed")
	e.Value("daybook_journal_files_retired_total", float64(s.AdoptedFiles), "adopted")
	e.Value("daybook_checkpoints_total", float64(s.Checkpoints))
	e.Value("daybook_storage_errors_total", float64(s.ReadErrors), "read")
	e.Value("daybook_storage_errors_total", float64(s.WorkErrors), "background")
	collectJournal(e, s.Journal)
}

func collectJournal(e expo.Emitter, j journal.Stats) {
	e.Value("daybook_journal_frames_total", float64(j.Frames))
	e.Value("daybook_journal_groups_total", float64(j.Groups))
	below, total := map[float64]uint64{}, uint64(0)
	for i, bound := range journal.SyncBounds {
		total += j.SyncBuckets[i]
		below[bound.Seconds()] = total
	}
	e.Buckets("daybook_journal_sync_seconds", j.Syncs, j.SyncTime.Seconds(), below)
	e.Value("daybook_journal_data_bytes_total", float64(j.DataBytes))
	e.Value("daybook_journal_written_bytes_total", float64(j.BytesWritten))
	e.Value("daybook_journal_files_total", float64(j.FilesCreated), "created")
	e.Value("daybook_journal_files_total", float64(j.FilesRecycled), "recycled")
	e.Value("daybook_journal_queue_groups", float64(j.QueueGroups))
	e.Value("daybook_journal_queue_bytes", float64(j.QueueBytes))
	e.Value("daybook_disk_free_bytes", float64(j.FreeBytes))
	for _, state := range []journal.SpaceState{journal.SpaceOK, journal.SpaceSoft, journal.SpaceHard} {
		e.Value("daybook_disk_state", number(state == j.Space), state.String())
	}
}

func (b *Broker) collectKafka(e expo.Emitter) {
	if b.kafka == nil {
		return
	}
	s := b.kafka.Stats()
	e.Value("daybook_kafka_connections", float64(b.kafka.Connections()))
	e.Value("daybook_kafka_connections_total", float64(s.Opened.Load()), "accepted")
	e.Value("daybook_kafka_connections_total", float64(s.Refused.Load()), "refused")
	e.Value("daybook_kafka_bytes_total", float64(s.BytesIn.Load()), "in")
	e.Value("daybook_kafka_bytes_total", float64(s.BytesOut.Load()), "out")
	t := b.kafka.Traffic()
	e.Value("daybook_produced_records_total", float64(t.Produced.Load()))
	e.Value("daybook_produced_bytes_total", float64(t.ProducedBytes.Load()))
	e.Value("daybook_fetched_bytes_total", float64(t.FetchedBytes.Load()))
	for _, key := range b.kafka.Keys() {
		if h := s.Requests(key); h.Snapshot().Count > 0 {
			e.Histogram("daybook_kafka_request_seconds", h, kmsg.NameForKey(key))
		}
	}
	codes.EachAnswered(func(code codes.Code, n int64) {
		e.Value("daybook_kafka_errors_total", float64(n), codeName(code))
	})
}

// codeName is Kafka's name of an error code.
func codeName(code codes.Code) string {
	if err, ok := errors.AsType[*kerr.Error](kerr.ErrorForCode(code)); ok {
		return err.Message
	}
	return strconv.Itoa(int(code))
}

func (b *Broker) collectGroups(e expo.Emitter) {
	s := b.groups.Stats()
	for state, n := range s.GroupsByState {
		e.Value("daybook_groups", float64(n), state)
	}
	e.Value("daybook_group_members", float64(s.Members))
	e.Value("daybook_group_offsets", float64(s.Offsets))
	for reason, n := range s.Rebalances {
		e.Value("daybook_group_rebalances_total", float64(n), reason)
	}
	for reason, n := range s.Departures {
		e.Value("daybook_group_departures_total", float64(n), reason)
	}
}

func (b *Broker) collectShares(e expo.Emitter) {
	for _, s := range b.shares.Stats() {
		e.Value("daybook_share_group_members", float64(s.Members), s.Group)
		e.Value("daybook_share_group_records", float64(s.Ready), s.Group, "ready")
		e.Value("daybook_share_group_records", float64(s.Waiting), s.Group, "waiting")
		e.Value("daybook_share_group_records", float64(s.InFlight), s.Group, "in_flight")
		e.Value("daybook_share_group_records", float64(s.Delayed), s.Group, "delayed")
		e.Value("daybook_share_group_dead_total", float64(s.Dead), s.Group)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
