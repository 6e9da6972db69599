package assignor

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
)

func topic(n byte, partitions int32) Topic {
	return Topic{ID: model.TopicID{n}, Partitions: partitions}
}

func TestRange(t *testing.T) {
	t1, t2 := topic(1, 5), topic(2, 2)
	got := Assign(Range, []Member{
		{ID: "b", Topics: []Topic{t1, t2}}, {ID: "z", Instance: "a", Topics: []Topic{t1}}, {ID: "c", Topics: []Topic{t1, t2}},
	})
	want := Assignment{ // z comes first, by its instance id
		"z": {t1.ID: {0, 1}},
		"b": {t1.ID: {2, 3}, t2.ID: {0}},
		"c": {t1.ID: {4}, t2.ID: {1}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// TestAssignorsProperties: every partition that somebody wants has one owner, who
// wants it; the same input gives the same; uniform is level and moves little.
func TestAssignorsProperties(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var topics []Topic
		for i := range 1 + rnd.IntN(5) {
			topics = append(topics, topic(byte(i+1), int32(rnd.IntN(12))))
		}
		same := rnd.IntN(2) == 0
		var members []Member
		before := map[string]Assignment{}
		for round := range 6 {
			if len(members) > 1 && rnd.IntN(3) == 0 {
				i := rnd.IntN(len(members))
				members = append(members[:i:i], members[i+1:]...)
			} else {
				m := Member{ID: fmt.Sprintf("m%d", round), Topics: topics}
				if !same {
					m.Topics = nil
					for _, tp := range topics {
						if rnd.IntN(2) == 0 {
							m.Topics = append(m.Topics, tp)
						}
					}
				}
				members = append(members, m)
			}
			for _, name := range Names() {
				in := make([]Member, len(members))
				for i, m := range members {
					m.Before = before[name][m.ID]
					in[i] = m
				}
				got := Assign(name, in)
				if again := Assign(name, in); !reflect.DeepEqual(got, again) {
					t.Fatalf("seed %d %s: %v, then %v", seed, name, got, again)
				}
				check(t, fmt.Sprintf("seed %d round %d %s", seed, round, name), in, got)
				if name == Uniform {
					checkLevel(t, fmt.Sprintf("seed %d round %d", seed, round), in, got, same)
				}
				before[name] = got
			}
		}
	}
}

func check(t *testing.T, at string, members []Member, as Assignment) {
	t.Helper()
	wanted := map[model.TopicID]int32{}
	owners := map[string]string{}
	for _, m := range members {
		wants := map[model.TopicID]int32{}
		for _, tp := range m.Topics {
			wants[tp.ID] = tp.Partitions
			wanted[tp.ID] = tp.Partitions
		}
		for id, ps := range as[m.ID] {
			for _, p := range ps {
				if p >= wants[id] {
					t.Fatalf("%s: %s has %v-%d, which it does not want or is not there", at, m.ID, id, p)
				}
				slot := fmt.Sprint(id, p)
				if owners[slot] != "" {
					t.Fatalf("%s: %s belongs to %s and %s", at, slot, owners[slot], m.ID)
				}
				owners[slot] = m.ID
			}
		}
	}
	n := int32(0)
	for _, partitions := range wanted {
		n += partitions
	}
	if int(n) != len(owners) {
		t.Fatalf("%s: %d partitions are wanted, %d assigned", at, n, len(owners))
	}
}

// checkLevel: nobody has two more than another who could have one of them; and with
// equal subscriptions no more is moved than that takes.
func checkLevel(t *testing.T, at string, members []Member, as Assignment, same bool) {
	t.Helper()
	count := func(m map[model.TopicID][]int32) (n int) {
		for _, ps := range m {
			n += len(ps)
		}
		return n
	}
	total := 0
	for _, a := range members {
		total += count(as[a.ID])
		for _, b := range members {
			if count(as[a.ID])-count(as[b.ID]) < 2 {
				continue
			}
			for _, tp := range b.Topics {
				if len(as[a.ID][tp.ID]) > 0 {
					t.Fatalf("%s: %s has %d partitions, %s %d and could have one of %v", at, a.ID, count(as[a.ID]), b.ID, count(as[b.ID]), tp.ID)
				}
			}
		}
	}
	if !same || len(members) == 0 {
		return
	}
	ceil := (total + len(members) - 1) / len(members)
	for _, m := range members {
		kept := 0
		for id, ps := range m.Before {
			for _, p := range ps {
				for _, q := range as[m.ID][id] {
					if p == q {
						kept++
					}
				}
			}
		}
		had, has := count(m.Before), count(as[m.ID])
		if had > 0 && had <= ceil && has >= had && kept < had {
			t.Fatalf("%s: %s had %d of at most %d, keeps %d", at, m.ID, had, ceil, kept)
		}
	}
}

func TestPrefer(t *testing.T) {
	for _, tc := range []struct {
		asked []string
		want  string
	}{
		{nil, Uniform}, {[]string{"", "range", ""}, Range}, {[]string{"range", "uniform", "uniform"}, Uniform}, {[]string{"nope"}, Uniform},
	} {
		if got := Prefer(tc.asked); got != tc.want {
			t.Errorf("Prefer(%v) = %s", tc.asked, got)
		}
	}
}

func BenchmarkUniform(b *testing.B) {
	var topics []Topic
	for i := range 100 {
		topics = append(topics, topic(byte(i+1), 100))
	}
	var members []Member
	for i := range 1000 {
		members = append(members, Member{ID: fmt.Sprint("m", i), Topics: topics})
	}
	as := Assign(Uniform, members)
	for i := range members {
		members[i].Before = as[members[i].ID]
	}
	members = append(members, Member{ID: "new", Topics: topics})
	for b.Loop() {
		Assign(Uniform, members)
	}
}
