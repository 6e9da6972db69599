package offsets

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func at(topic string, p int32, offset int64) Commit {
	return Commit{Key{topic, p}, Offset{Offset: offset, LeaderEpoch: -1, ExpireAt: -1}}
}

// event is one entry of the log that a store stands for.
type event struct {
	commits  []Commit
	remove   []Key
	producer int64 // 0: none
	end      bool
	commit   bool
}

// replay makes a store of a log.
func replay(log []event) *Store {
	s := &Store{}
	for _, e := range log {
		switch {
		case e.end:
			s.End(e.producer, 0, e.commit)
		case e.producer != 0:
			s.Stage(e.producer, 0, e.commits)
		default:
			for _, c := range e.commits {
				s.Put(c)
			}
			for _, k := range e.remove {
				s.Remove(k)
			}
		}
	}
	return s
}

func contents(s *Store) map[Key]int64 {
	m := map[Key]int64{}
	s.Each(func(c Commit) { m[c.Key] = c.Offset.Offset })
	return m
}

// TestReplayEqualsLive: after every step the store shows what a replay of the durable
// part of its log shows, and rewriting what is settled at the end changes nothing.
func TestReplayEqualsLive(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		live := &Store{}
		var log []event
		var landing []func() // callbacks of what is not durable yet, in order
		random := func() []Commit {
			var cs []Commit
			for range 1 + rnd.IntN(2) {
				cs = append(cs, at("t", int32(rnd.IntN(3)), rnd.Int64N(1000)))
			}
			return cs
		}
		durable := 0
		for range 60 {
			switch n := rnd.IntN(12); {
			case n < 3:
				cs := random()
				order := live.Write(cs)
				log = append(log, event{commits: cs})
				landing = append(landing, func() { live.Written(order, cs, true) })
			case n < 5:
				cs, id := random(), int64(1+rnd.IntN(2))
				live.Stage(id, 0, cs)
				log = append(log, event{commits: cs, producer: id})
				landing = append(landing, func() {})
			case n < 7:
				id, commit := int64(1+rnd.IntN(2)), rnd.IntN(2) == 0
				for len(landing) > 0 { // a coordinator ends what is durable
					landing[0]()
					landing = landing[1:]
					durable++
				}
				log = append(log, event{producer: id, end: true, commit: commit})
				live.End(id, 0, commit)
				landing = append(landing, func() {})
			case n == 7:
				keys := []Key{{"t", int32(rnd.IntN(3))}}
				order := live.Removing(keys)
				log = append(log, event{remove: keys})
				landing = append(landing, func() { live.Removed(order, keys, true) })
			case n == 8: // what counts is written again, and the log cut before it
				e := event{}
				if live.Settled(func(c Commit) { e.commits = append(e.commits, c) }) && len(e.commits) > 0 {
					log = append(log[durable:], e)
					durable = 0
					landing = append(landing, func() {})
				}
			case len(landing) > 0:
				landing[0]()
				landing = landing[1:]
				durable++
			}
			if len(landing) == 0 {
				if got, want := contents(live), contents(replay(log)); !maps.Equal(got, want) {
					t.Fatalf("seed %d: live %v, replay %v of %+v", seed, got, want, log)
				}
			}
		}
	}
}

func TestReadersSeeWhatIsDurable(t *testing.T) {
	s := &Store{}
	cs := []Commit{at("t", 0, 5)}
	order := s.Write(cs)
	if _, ok := s.Get(Key{"t", 0}); ok || s.Empty() {
		t.Error("a commit on its way is shown, or forgotten")
	}
	if got := s.Keys(""); !reflect.DeepEqual(got, []Key{{"t", 0}}) {
		t.Errorf("keys to delete: %v", got)
	}
	s.Written(order, cs, false)
	if _, ok := s.Get(Key{"t", 0}); ok || !s.Empty() {
		t.Error("a commit that failed is shown, or kept")
	}
}

func TestEndOfAnotherEpoch(t *testing.T) {
	s := &Store{}
	s.Stage(1, 5, []Commit{at("t", 0, 5)})
	if s.End(1, 4, true) || !s.Unstable(Key{"t", 0}) {
		t.Error("the marker of an older epoch ends a newer transaction")
	}
	if !s.End(1, 5, true) || s.Unstable(Key{"t", 0}) {
		t.Error("the marker does not end its transaction")
	}
	if o, _ := s.Get(Key{"t", 0}); o.Offset != 5 {
		t.Errorf("offset %v", o)
	}
	order := s.Stage(2, 0, []Commit{at("t", 1, 1)})
	s.Unstage(2, order, []Commit{at("t", 1, 1)})
	if s.Unstable(Key{"t", 1}) {
		t.Error("what could not be staged stays unstable")
	}
}

func TestExpired(t *testing.T) {
	s := &Store{}
	put := func(topic string, p int32, at, expireAt int64) {
		s.Put(Commit{Key{topic, p}, Offset{At: at, ExpireAt: expireAt}})
	}
	put("t", 0, 100, -1)
	put("t", 1, 500, -1)
	put("t", 2, 100, 150)
	put("u", 0, 100, -1)
	s.Stage(1, 0, []Commit{at("t", 3, 1)})
	put("t", 3, 0, -1)
	keep := func(topic string) bool { return topic == "u" }
	for _, tc := range []struct {
		now, base int64
		want      []int32
	}{
		{149, 0, nil}, {150, 0, []int32{2}}, {300, 0, []int32{0, 2}}, {300, 250, []int32{2}}, {700, 0, []int32{0, 1, 2}},
	} {
		var got []int32
		for _, k := range s.Expired(tc.now, tc.base, 200, keep) {
			got = append(got, k.Partition)
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			t.Errorf("at %d, empty since %d: %v, want %v", tc.now, tc.base, got, tc.want)
		}
	}
}
