package app

import "github.com/daybook-mq/daybook/internal/obs/expo"

// metrics declares everything that /metrics shows of Daybook's own; the collect
// functions fill it. Durations are in seconds, sizes in bytes.
var metrics = []expo.Desc{
	{Name: "daybook_build_info", Kind: expo.Gauge, Labels: []string{"version", "go"}, Help: "1, with the version in a label."},
	{Name: "daybook_uptime_seconds", Kind: expo.Gauge, Help: "Time since the start."},
	{Name: "daybook_sync_mode", Kind: expo.Gauge, Labels: []string{"mode"}, Help: "1, with when writes count as durable in a label: always, interval or none."},
	{Name: "daybook_serving", Kind: expo.Gauge, Help: "1 while all parts run; 0 during recovery and stop."},

	{Name: "daybook_journal_frames_total", Kind: expo.Counter, Help: "Frames written to the journal."},
	{Name: "daybook_journal_groups_total", Kind: expo.Counter, Help: "Append groups written; divided by frames, how well writes are batched."},
	{Name: "daybook_journal_sync_seconds", Kind: expo.Seconds, Help: "Latency of the journal's fdatasync."},
	{Name: "daybook_journal_data_bytes_total", Kind: expo.Counter, Help: "Bytes of record batches appended."},
	{Name: "daybook_journal_written_bytes_total", Kind: expo.Counter, Help: "Bytes written to journal files, zeros written ahead included."},
	{Name: "daybook_journal_files_total", Kind: expo.Counter, Labels: []string{"origin"}, Help: "Journal files taken into use, created or recycled."},
	{Name: "daybook_journal_queue_groups", Kind: expo.Gauge, Help: "Append groups that wait for the committer."},
	{Name: "daybook_journal_queue_bytes", Kind: expo.Gauge, Help: "Bytes accepted and not yet written."},
	{Name: "daybook_disk_free_bytes", Kind: expo.Gauge, Help: "Free bytes on the data directory's file system, as last seen."},
	{Name: "daybook_disk_state", Kind: expo.Gauge, Labels: []string{"state"}, Help: "1 for the state that the disk is in: ok, soft or hard limit, failed."},

	{Name: "daybook_tail_bytes", Kind: expo.Gauge, Help: "Newest batches held in memory."},
	{Name: "daybook_segment_written_bytes_total", Kind: expo.Counter, Help: "Bytes of batches written a second time, to segments."},
	{Name: "daybook_journal_files_retired_total", Kind: expo.Counter, Labels: []string{"way"}, Help: "Sealed journal files that were flushed into segments, or adopted as they are."},
	{Name: "daybook_checkpoints_total", Kind: expo.Counter, Help: "Checkpoints written."},
	{Name: "daybook_storage_errors_total", Kind: expo.Counter, Labels: []string{"work"}, Help: "Reads and background work that the disk's bytes or the disk made fail."},

	{Name: "daybook_kafka_connections", Kind: expo.Gauge, Help: "Open connections of Kafka clients."},
	{Name: "daybook_kafka_connections_total", Kind: expo.Counter, Labels: []string{"outcome"}, Help: "Connections accepted, or refused at the limit."},
	{Name: "daybook_kafka_bytes_total", Kind: expo.Counter, Labels: []string{"direction"}, Help: "Bytes of requests (in) and answers (out)."},
	{Name: "daybook_produced_records_total", Kind: expo.Counter, Help: "Records of acknowledged batches."},
	{Name: "daybook_produced_bytes_total", Kind: expo.Counter, Help: "Bytes of acknowledged batches, as they came."},
	{Name: "daybook_fetched_bytes_total", Kind: expo.Counter, Help: "Bytes of batches in answers to fetches."},
	{Name: "daybook_kafka_errors_total", Kind: expo.Counter, Labels: []string{"code"}, Help: "Errors answered, by Kafka's error code."},
	{Name: "daybook_kafka_request_seconds", Kind: expo.Seconds, Labels: []string{"api"}, Help: "Time from a request's last byte to the end of its answer, by API; a fetch's long poll counts."},

	{Name: "daybook_topics", Kind: expo.Gauge, Help: "Topics, internal ones included."},
	{Name: "daybook_partitions", Kind: expo.Gauge, Help: "Partitions of all topics."},

	{Name: "daybook_groups", Kind: expo.Gauge, Labels: []string{"state"}, Help: "Consumer groups by state."},
	{Name: "daybook_group_members", Kind: expo.Gauge, Help: "Members of all groups."},
	{Name: "daybook_group_offsets", Kind: expo.Gauge, Help: "Committed offsets that are kept."},
	{Name: "daybook_group_rebalances_total", Kind: expo.Counter, Labels: []string{"reason"}, Help: "Rebalances by what caused them."},
	{Name: "daybook_share_group_members", Kind: expo.Gauge, Labels: []string{"group"}, Help: "Members of a share group."},
	{Name: "daybook_share_group_records", Kind: expo.Gauge, Labels: []string{"group", "state"}, Help: "Records that a share group is owed, by state."},
	{Name: "daybook_share_group_dead_total", Kind: expo.Counter, Labels: []string{"group"}, Help: "Records that died in a share group since the start."},
	{Name: "daybook_group_departures_total", Kind: expo.Counter, Labels: []string{"reason"}, Help: "Members that went, by why."},
}
