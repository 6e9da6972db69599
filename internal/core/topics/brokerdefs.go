package topics

// brokerDefinitions lists the broker's settings: the defaults of topic settings
// first, then what the broker itself acts on.
var brokerDefinitions = func() map[string]*Definition {
	m := index([]Definition{
		{Key: "auto.create.topics.enable", Type: Boolean, Default: "true", Doc: "Whether a client's request for metadata of a missing topic creates it."},
		{Key: "num.partitions", Type: Int, Default: "1", Min: 1, Max: maxInt, Doc: "Partitions of a topic that is created without a number."},
		{Key: "default.replication.factor", Type: Int, Default: "1", Min: 1, Max: maxInt, ReadOnly: true, Doc: "Replicas of a topic that is created without a number; one node keeps one."},
		{Key: "delete.topic.enable", Type: Boolean, Default: "true", ReadOnly: true, Doc: "Topics can be deleted."},
		{Key: "group.initial.rebalance.delay.ms", Type: Int, Default: "0", Max: maxInt, Doc: "How long an empty group waits for more members before its first rebalance, in milliseconds. Kafka's default is 3000; 0 starts at once."},
		{Key: "group.min.session.timeout.ms", Type: Int, Default: "6000", Max: maxInt, Doc: "The shortest session timeout that a member may ask for, in milliseconds."},
		{Key: "group.max.session.timeout.ms", Type: Int, Default: "1800000", Max: maxInt, Doc: "The longest session timeout that a member may ask for, in milliseconds."},
		{Key: "group.max.size", Type: Int, Default: "2147483647", Min: 1, Max: maxInt, Doc: "The largest number of members of one classic group."},
		{Key: "group.consumer.session.timeout.ms", Type: Int, Default: "45000", Min: 1, Max: maxInt, Doc: "Session timeout of members of consumer groups (KIP-848), in milliseconds."},
		{Key: "group.consumer.heartbeat.interval.ms", Type: Int, Default: "5000", Min: 1, Max: maxInt, Doc: "Heartbeat interval that members of consumer groups (KIP-848) are told, in milliseconds."},
		{Key: "group.consumer.max.size", Type: Int, Default: "2147483647", Min: 1, Max: maxInt, Doc: "The largest number of members of one consumer group (KIP-848)."},
		{Key: "group.share.session.timeout.ms", Type: Int, Default: "45000", Min: 1, Max: maxInt, Doc: "Session timeout of members of share groups, in milliseconds."},
		{Key: "group.share.heartbeat.interval.ms", Type: Int, Default: "5000", Min: 1, Max: maxInt, Doc: "Heartbeat interval that members of share groups are told, in milliseconds."},
		{Key: "group.share.record.lock.duration.ms", Type: Int, Default: "30000", Min: 1, Max: maxInt, Doc: "How long a delivered record is locked for its member, in milliseconds."},
		{Key: "group.share.delivery.count.limit", Type: Int, Default: "5", Min: 1, Max: 32767, Doc: "After this many deliveries without success a record is dead."},
		{Key: "group.share.partition.max.record.locks", Type: Int, Default: "2000", Min: 1, Max: 10_000_000, Doc: "The most records of one partition that one share group may have in flight."},
		{Key: "group.share.max.size", Type: Int, Default: "200", Min: 1, Max: maxInt, Doc: "The largest number of members of one share group."},
		{Key: "group.share.max.share.sessions", Type: Int, Default: "2000", Min: 1, Max: maxInt, ReadOnly: true, Doc: "The largest number of share sessions."},
		{Key: "errors.deadletterqueue.topic.name.prefix", Type: String, Default: "dlq.", Doc: "How the names of dead-letter topics must begin; empty: any name (KIP-1191)."},
		{Key: "errors.deadletterqueue.auto.create.topics.enable", Type: Boolean, Default: "false", Doc: "Whether a missing dead-letter topic is created (KIP-1191)."},
		{Key: "offset.metadata.max.bytes", Type: Int, Default: "4096", Max: maxInt, Doc: "The largest metadata string of an offset commit, in bytes."},
		{Key: "offsets.retention.minutes", Type: Int, Default: "10080", Min: 1, Max: maxInt, Doc: "How long the offsets of an empty group are kept, in minutes."},
		{Key: "offsets.topic.num.partitions", Type: Int, Default: "50", Min: 1, Max: maxInt, ReadOnly: true, Doc: "Partitions of __consumer_offsets, fixed when it is created."},
		{Key: "transaction.state.log.num.partitions", Type: Int, Default: "50", Min: 1, Max: maxInt, ReadOnly: true, Doc: "Partitions of __transaction_state, fixed when it is created."},
		{Key: "transaction.max.timeout.ms", Type: Int, Default: "900000", Min: 1, Max: maxInt, Doc: "The longest transaction timeout that a producer may ask for, in milliseconds."},
		{Key: "transactional.id.expiration.ms", Type: Int, Default: week, Min: 1, Max: maxInt, Doc: "How long an idle transactional id is remembered, in milliseconds."},
		{Key: "producer.id.expiration.ms", Type: Int, Default: day, Min: 1, Max: maxInt, Doc: "How long a partition remembers an idle producer's sequences, in milliseconds."},
		{Key: "connections.max.idle.ms", Type: Long, Default: "600000", ReadOnly: true, Doc: "An idle connection is closed after this many milliseconds."},
		{Key: "max.incremental.fetch.session.cache.slots", Type: Int, Default: "1000", Max: maxInt, ReadOnly: true, Doc: "The largest number of incremental fetch sessions."},
		{Key: "socket.request.max.bytes", Type: Int, Default: "104857600", Min: 1, Max: maxInt, ReadOnly: true, Doc: "The largest request, in bytes."},
		{Key: "log.cleaner.enable", Type: Boolean, Default: "true", ReadOnly: true, Doc: "Compacted topics are compacted."},
		{Key: "log.cleaner.threads", Type: Int, Default: "1", Min: 1, Max: maxInt, Doc: "Kept and given back; compaction shares one background worker."},
		{Key: "log.retention.check.interval.ms", Type: Long, Default: "300000", Min: 1, Doc: "Kept and given back; retention is applied as files close and on a timer of its own."},
		{Key: "leader.replication.throttled.rate", Type: Long, Default: "9223372036854775807", Doc: "Kept and given back; one node has no followers."},
		{Key: "follower.replication.throttled.rate", Type: Long, Default: "9223372036854775807", Doc: "Kept and given back; one node has no followers."},
		{Key: "replica.alter.log.dirs.io.max.bytes.per.second", Type: Long, Default: "9223372036854775807", Doc: "Kept and given back; there is one data directory."},
		{Key: "node.id", Type: Int, Default: "1", Max: maxInt, ReadOnly: true, Doc: "The number of this node."},
		{Key: "broker.id", Type: Int, Default: "1", Max: maxInt, ReadOnly: true, Doc: "The number of this node."},
		{Key: "process.roles", Type: List, Default: "broker,controller", ReadOnly: true, Doc: "One node is broker and controller."},
		{Key: "log.dirs", Type: String, ReadOnly: true, Doc: "The data directory."},
		{Key: "listeners", Type: String, ReadOnly: true, Doc: "The address that Kafka clients connect to."},
		{Key: "advertised.listeners", Type: String, ReadOnly: true, Doc: "The address that clients are told; empty: the one that each client dialled."},
	})
	for _, t := range topicDefinitions {
		for i, b := range t.brokerKeys {
			if m[b.key] != nil {
				continue
			}
			d := *t
			d.Key, d.brokerKeys = b.key, nil
			d.Doc = "Default of the topic setting " + t.Key + ". " + t.Doc
			if b.scale > 1 || i+1 < len(t.brokerKeys) {
				d.Default = "" // the last, coarsest key holds the default; finer ones are unset
			}
			m[b.key] = &d
		}
	}
	m["log.retention.hours"].Default = "168"
	m["log.roll.hours"].Default = "168"
	m["log.roll.jitter.hours"].Default = "0"
	return m
}()

// groupDefinitions lists the settings of one group (resource type GROUP; KIP-848,
// KIP-932, KIP-1191). Those under daybook.share. are Daybook's own.
var groupDefinitions = index([]Definition{
	{Key: "consumer.session.timeout.ms", Type: Int, Default: "45000", Min: 1, Max: maxInt, brokerKeys: from("group.consumer.session.timeout.ms"), Doc: "Session timeout of the group's members, in milliseconds."},
	{Key: "consumer.heartbeat.interval.ms", Type: Int, Default: "5000", Min: 1, Max: maxInt, brokerKeys: from("group.consumer.heartbeat.interval.ms"), Doc: "Heartbeat interval that the group's members are told, in milliseconds."},
	{Key: "share.session.timeout.ms", Type: Int, Default: "45000", Min: 1, Max: maxInt, brokerKeys: from("group.share.session.timeout.ms"), Doc: "Session timeout of the share group's members, in milliseconds."},
	{Key: "share.heartbeat.interval.ms", Type: Int, Default: "5000", Min: 1, Max: maxInt, brokerKeys: from("group.share.heartbeat.interval.ms"), Doc: "Heartbeat interval that the share group's members are told, in milliseconds."},
	{Key: "share.record.lock.duration.ms", Type: Int, Default: "30000", Min: 1, Max: maxInt, brokerKeys: from("group.share.record.lock.duration.ms"), Doc: "How long a delivered record is locked for its member, in milliseconds."},
	{Key: "share.delivery.count.limit", Type: Int, Default: "5", Min: 1, Max: 32767, brokerKeys: from("group.share.delivery.count.limit"), Doc: "After this many deliveries without success a record is dead."},
	{Key: "share.partition.max.record.locks", Type: Int, Default: "2000", Min: 1, Max: 10_000_000, brokerKeys: from("group.share.partition.max.record.locks"), Doc: "The most records of one partition that may be in flight."},
	{Key: "share.auto.offset.reset", Type: String, Default: "latest", check: checkShareReset, Doc: "Where a share group begins on a partition: earliest, latest, or by_duration: and an ISO 8601 duration."},
	{Key: "share.isolation.level", Type: String, Default: "read_uncommitted", Allowed: []string{"read_uncommitted", "read_committed"}, Doc: "Whether the group sees records of open and aborted transactions."},
	{Key: "share.renew.acknowledge.enable", Type: Boolean, Default: "true", Doc: "Whether members may renew their locks."},
	{Key: "errors.deadletterqueue.topic.name", Type: String, Doc: "The topic that the group's dead records go to; empty: none. It needs errors.deadletterqueue.group.enable=true."},
	{Key: "errors.deadletterqueue.copy.record.enable", Type: Boolean, Default: "false", Doc: "Whether a dead letter holds the record's key, value and headers, not only where it lies."},
	{Key: "daybook.share.order", Type: String, Default: "none", Allowed: []string{"none", "key"}, Doc: "key: at most one record of a key is in flight, in order; keys move freely between members."},
	{Key: "daybook.share.backoff.initial.ms", Type: Long, Default: "0", Doc: "A released record is not delivered again before this many milliseconds; 0: at once."},
	{Key: "daybook.share.backoff.multiplier", Type: Double, Default: "2", Min: 1, Max: 100, Doc: "Each further delivery multiplies the backoff by this."},
	{Key: "daybook.share.backoff.max.ms", Type: Long, Default: "60000", Doc: "The longest backoff, in milliseconds."},
	{Key: "daybook.share.backoff.jitter", Type: Double, Default: "0.2", Max: 1, Doc: "The share of the backoff that is random; it only adds, so that a delay is never shortened."},
	{Key: "daybook.share.delay.header", Type: String, Doc: "A record header that holds a delay in milliseconds (decimal text): the record is first delivered that long after its timestamp. Empty: none."},
	{Key: "daybook.share.delay.pass", Type: Boolean, Default: "false", Doc: "With order=key: later records of a key may overtake one that is delayed."},
	{Key: "daybook.share.single.active", Type: Boolean, Default: "false", Doc: "One member at a time gets a partition's records: the first that asks, until it leaves."},
	{Key: "daybook.share.priority", Type: String, Default: "none", Allowed: []string{"none", "partition"}, Doc: "partition: records of a higher partition are delivered before those of lower ones."},
	{Key: "daybook.share.park", Type: Boolean, Default: "false", Doc: "With order=key: a key stays closed after one of its records died, until it is opened by hand."},
})
