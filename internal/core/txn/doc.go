// Package txn is the transaction coordinator (KIP-98, 360, 447, 890).
//
// It owns: the state of every transactional id (machine.go, pure), its records in
// __transaction_state in Kafka's format (codec.go), the order in which records and
// markers enter the journal (coordinator.go, finish.go), time-outs and expiry
// (tick.go). It does not know requests, groups or what a partition holds.
//
// A shard is one partition of __transaction_state with the ids that hash to it.
// Under the shard's lock a command is decided, put in line in the journal, and
// taken into the state; the lock is never held while the disk works. The journal
// keeps the order, so a later decision may build on an earlier one that is not
// durable yet: no reply leaves before all that it rests on is durable, and a
// failing journal stops the broker.
//
// The end of a transaction is Kafka's: record Prepare, write a marker to every
// partition, record Complete. While all partitions live here and fit, the three
// are one append group: nobody ever sees half of it. A larger one is several
// groups in a row; one that cannot reach a partition stays in Prepare, and tick
// goes on with it. A restart finishes what it finds in Prepare. Markers may be
// written twice, since no other transaction of the id begins before Complete.
package txn
