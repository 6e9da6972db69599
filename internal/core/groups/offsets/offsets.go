// Package offsets is the committed offsets of one group: those that count, those
// that a transaction has yet to decide on, and those that are being stored. It is
// pure: the owner appends the records, and tells the store in the log's order what
// became of them. Readers see durable offsets only.
package offsets

import "github.com/daybook-mq/daybook/internal/model"

// Key names a partition by topic name, as Kafka's offset records do.
type Key struct {
	Topic     string
	Partition int32
}

// Offset is one committed position.
type Offset struct {
	Offset      int64
	LeaderEpoch int32 // -1: not known
	Metadata    string
	At          int64         // when it was committed, milliseconds
	ExpireAt    int64         // asked for by an old request (version 2 to 4), milliseconds; -1: by retention
	TopicID     model.TopicID // zero in records of other brokers
}

// Commit is an offset for a key.
type Commit struct {
	Key
	Offset
}

// entry is an offset with its place in the order of the group's records.
type entry struct {
	Offset
	order uint64
}

type txn struct {
	epoch   int16
	entries map[Key]entry
}

// Store holds one group's offsets. The zero value is empty. Not safe for
// concurrent use: its owner locks it.
type Store struct {
	committed map[string]map[int32]entry
	txns      map[int64]*txn // by producer id
	unstable  map[Key]int    // how many open transactions hold the key
	writing   map[Key]int    // how many commits and deletions of the key are being stored
	order     uint64
}

// Write notes that commits have been appended, and gives their place in the order
// for Written. Until then readers do not see them.
func (s *Store) Write(cs []Commit) uint64 {
	for _, c := range cs {
		s.begin(c.Key)
	}
	s.order++
	return s.order
}

func (s *Store) begin(k Key) {
	if s.writing == nil {
		s.writing = map[Key]int{}
	}
	s.writing[k]++
}

func (s *Store) finish(k Key) {
	if s.writing[k]--; s.writing[k] <= 0 {
		delete(s.writing, k)
	}
}

// Written says that the commits of order are durable, or that they are not to be.
func (s *Store) Written(order uint64, cs []Commit, ok bool) {
	for _, c := range cs {
		s.finish(c.Key)
		if ok {
			s.put(c.Key, entry{c.Offset, order})
		}
	}
}

// Put takes a durable commit, as a replay does.
func (s *Store) Put(c Commit) {
	s.order++
	s.put(c.Key, entry{c.Offset, s.order})
}

// put keeps what is later in the log: a transaction's offset counts from where its
// record lies, not from where its marker does.
func (s *Store) put(k Key, e entry) {
	ps := s.committed[k.Topic]
	if ps == nil {
		if s.committed == nil {
			s.committed = map[string]map[int32]entry{}
		}
		ps = map[int32]entry{}
		s.committed[k.Topic] = ps
	}
	if old, ok := ps[k.Partition]; !ok || old.order <= e.order {
		ps[k.Partition] = e
	}
}

// Stage notes offsets of a producer's open transaction. From now on their keys are
// unstable; End decides on them.
func (s *Store) Stage(producerID int64, epoch int16, cs []Commit) uint64 {
	s.order++
	t := s.txns[producerID]
	if t == nil {
		if s.txns == nil {
			s.txns, s.unstable = map[int64]*txn{}, map[Key]int{}
		}
		t = &txn{entries: map[Key]entry{}}
		s.txns[producerID] = t
	}
	t.epoch = epoch
	for _, c := range cs {
		if _, ok := t.entries[c.Key]; !ok {
			s.unstable[c.Key]++
		}
		t.entries[c.Key] = entry{c.Offset, s.order}
	}
	return s.order
}

// Unstage takes back what could not be stored.
func (s *Store) Unstage(producerID int64, order uint64, cs []Commit) {
	t := s.txns[producerID]
	if t == nil {
		return
	}
	for _, c := range cs {
		if e, ok := t.entries[c.Key]; ok && e.order == order {
			delete(t.entries, c.Key)
			s.steady(c.Key)
		}
	}
	if len(t.entries) == 0 {
		delete(s.txns, producerID)
	}
}

// End applies or drops what the producer's transaction staged, up to epoch. It
// reports whether there was any.
func (s *Store) End(producerID int64, epoch int16, commit bool) bool {
	t := s.txns[producerID]
	if t == nil || t.epoch > epoch {
		return false
	}
	delete(s.txns, producerID)
	for k, e := range t.entries {
		s.steady(k)
		if commit {
			s.put(k, e)
		}
	}
	return true
}

func (s *Store) steady(k Key) {
	if s.unstable[k]--; s.unstable[k] <= 0 {
		delete(s.unstable, k)
	}
}

// Removing notes that deletions of keys have been appended, and gives their place
// in the order for Removed.
func (s *Store) Removing(keys []Key) uint64 {
	for _, k := range keys {
		s.begin(k)
	}
	s.order++
	return s.order
}

// Removed says that the deletions of order are durable, or that they are not to be.
func (s *Store) Removed(order uint64, keys []Key, ok bool) {
	for _, k := range keys {
		s.finish(k)
		if ok {
			s.remove(k, order)
		}
	}
}

// Remove takes a durable deletion of k, as a replay does.
func (s *Store) Remove(k Key) {
	s.order++
	s.remove(k, s.order)
}

// remove drops what came before order, also what a transaction staged.
func (s *Store) remove(k Key, order uint64) {
	if ps := s.committed[k.Topic]; ps != nil {
		delete(ps, k.Partition)
		if len(ps) == 0 {
			delete(s.committed, k.Topic)
		}
	}
	for id, t := range s.txns {
		if e, ok := t.entries[k]; ok && e.order < order {
			delete(t.entries, k)
			s.steady(k)
		}
		if len(t.entries) == 0 {
			delete(s.txns, id)
		}
	}
}

// Get finds the durable offset of k.
func (s *Store) Get(k Key) (Offset, bool) {
	e, ok := s.committed[k.Topic][k.Partition]
	return e.Offset, ok
}

// Unstable reports whether an open transaction may change k (KIP-447).
func (s *Store) Unstable(k Key) bool { return s.unstable[k] > 0 }

// Each calls f with every durable offset, in no particular order.
func (s *Store) Each(f func(Commit)) {
	for topic := range s.committed {
		s.OfTopic(topic, f)
	}
}

// OfTopic calls f with every durable offset of one topic.
func (s *Store) OfTopic(topic string, f func(Commit)) {
	for p, e := range s.committed[topic] {
		f(Commit{Key{topic, p}, e.Offset})
	}
}

// Settled calls f with the durable offsets that nothing newer is on its way for; false,
// and no call, when a transaction is open.
func (s *Store) Settled(f func(Commit)) bool {
	if len(s.unstable) > 0 {
		return false
	}
	s.Each(func(c Commit) {
		if s.writing[c.Key] == 0 {
			f(c)
		}
	})
	return true
}

// Keys gives every key that the log may hold a value for: durable, being stored or
// staged; of one topic, or of all when topic is "". A deletion must cover them all.
func (s *Store) Keys(topic string) []Key {
	var keys []Key
	seen := map[Key]bool{}
	add := func(k Key) {
		if !seen[k] && (topic == "" || k.Topic == topic) {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	s.Each(func(c Commit) { add(c.Key) })
	for k := range s.writing {
		add(k)
	}
	for k := range s.unstable {
		add(k)
	}
	return keys
}

// Empty reports that nothing is held, being stored or staged.
func (s *Store) Empty() bool {
	return len(s.committed) == 0 && len(s.writing) == 0 && len(s.unstable) == 0
}

// Len counts the durable offsets.
func (s *Store) Len() int {
	n := 0
	for _, ps := range s.committed {
		n += len(ps)
	}
	return n
}

// Expired lists the keys whose offsets are over at now: retention after the commit
// or after base, whichever is later; all in milliseconds. Keys in use by a commit
// or a transaction are not over, nor those of topics that keep says are consumed.
func (s *Store) Expired(now, base, retention int64, keep func(topic string) bool) []Key {
	var over []Key
	for topic := range s.committed {
		if keep(topic) {
			continue
		}
		s.OfTopic(topic, func(c Commit) {
			end := max(base, c.At) + retention
			if c.ExpireAt >= 0 {
				end = c.ExpireAt
			}
			if now >= end && s.unstable[c.Key] == 0 && s.writing[c.Key] == 0 {
				over = append(over, c.Key)
			}
		})
	}
	return over
}
