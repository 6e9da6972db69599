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
		{Key: "offset.metadata.max.bytes", Type: Int, Default: "4096", Max: maxInt, Doc: "The largest metadata string of an offset commit, in bytes."},
		{Key: "offsets.retention.minutes", Type: Int, Default: "10080", Min: 1, Max: maxInt, Doc: "How long the offsets of an empty group are kept, in minutes."},
		{Key: "offsets.topic.num.partitions", Type: Int, Default: "50", Min: 1, Max: maxInt, ReadOnly: true, Doc: "Partitions of __consumer_offsets, fixed when it is created."},
		{Key: "transaction.state.log.num.partitions", Type: Int, Default: "50", Min: 1, Max: maxInt, ReadOnly: true, Doc: "Partitions of __transaction_state, fixed when it is created."},
		{Key: "transaction.max.timeout.ms", Type: Int, Default: "900000", Min: 1, Max: maxInt, Doc: "The longest transaction timeout that a producer may ask for, in milliseconds."},
		{Key: "transactional.id.expiration.ms", Type: Int, Default: week, Min: 1, Max: maxInt, Doc: "How long an idle transactional id is remembered, in milliseconds."},
		{Key: "producer.id.expiration.ms", Type: Int, Default: day, Min: 1, Max: maxInt, Doc: "How long a partition remembers an idle producer's sequences, in milliseconds."},
		{Key: "connections.max.idle.ms", Type: Long, Default: "600000", Doc: "An idle connection is closed after this many milliseconds."},
		{Key: "max.incremental.fetch.session.cache.slots", Type: Int, Default: "1000", Max: maxInt, ReadOnly: true, Doc: "The largest number of incremental fetch sessions."},
		{Key: "socket.request.max.bytes", Type: Int, Default: "104857600", Min: 1, Max: maxInt, ReadOnly: true, Doc: "The largest request, in bytes."},
		{Key: "log.cleaner.enable", Type: Boolean, Default: "true", ReadOnly: true, Doc: "Compacted topics are compacted."},
		{Key: "log.cleaner.threads", Type: Int, Default: "1", Min: 1, Max: maxInt, Doc: "Kept and given back; compaction shares one background worker."},
		{Key: "log.retention.check.interval.ms", Type: Long, Default: "300000", Min: 1, Doc: "Kept and given back; retention is applied as files close and on a timer of its own."},
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

// groupDefinitions lists the settings of one group (resource type GROUP; KIP-848).
var groupDefinitions = index([]Definition{
	{Key: "consumer.session.timeout.ms", Type: Int, Default: "45000", Min: 1, Max: maxInt, brokerKeys: from("group.consumer.session.timeout.ms"), Doc: "Session timeout of the group's members, in milliseconds."},
	{Key: "consumer.heartbeat.interval.ms", Type: Int, Default: "5000", Min: 1, Max: maxInt, brokerKeys: from("group.consumer.heartbeat.interval.ms"), Doc: "Heartbeat interval that the group's members are told, in milliseconds."},
})
