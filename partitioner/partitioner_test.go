package partitioner

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/daybooktest"
)

// The values are those that Kafka's own Java clients compute.
func TestMurmur2IsKafkas(t *testing.T) {
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
	} {
		if got := int32(Murmur2([]byte(key))); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}

// franz-go, which agrees with Java, chooses the same partition for every key.
func TestForKeyAgreesWithClients(t *testing.T) {
	theirs := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	ours := ByKey().ForTopic("t")
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		key := make([]byte, 1+rng.IntN(40))
		for i := range key {
			key[i] = byte(rng.Uint32())
		}
		n := 1 + rng.IntN(100)
		r := &kgo.Record{Key: key}
		if a, b, c := ForKey(key, n), theirs.Partition(r, n), ours.Partition(r, n); a != b || a != c {
			t.Fatalf("key %x of %d: %d, theirs %d, as a partitioner %d", key, n, a, b, c)
		}
	}
}

func TestRangesKeepOrderAndLearnEvenly(t *testing.T) {
	if _, err := NewRange([]byte("b"), []byte("a")); err == nil {
		t.Error("descending splits are accepted")
	}
	r, err := NewRange([]byte("g"), []byte("p"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"": 0, "a": 0, "fzz": 0, "g": 1, "oz": 1, "p": 2, "z": 2} {
		if got := r.ForKey([]byte(key)); got != want {
			t.Errorf("%q: partition %d, want %d", key, got, want)
		}
	}
	var samples [][]byte
	for i := range 1000 {
		samples = append(samples, fmt.Appendf(nil, "%05d", i*i))
	}
	learned, err := LearnRange(samples, 4)
	if err != nil || learned.Partitions() != 4 {
		t.Fatal(learned.Partitions(), err)
	}
	count := make([]int, 4)
	last := 0
	for _, s := range samples {
		p := learned.ForKey(s)
		if p < last && bytes.Compare(s, samples[0]) > 0 && len(s) == len(samples[0]) {
			t.Fatalf("key %s goes back to partition %d", s, p)
		}
		count[p]++
	}
	for p, n := range count {
		if n < 200 || n > 300 {
			t.Errorf("partition %d has %d of 1000 samples", p, n)
		}
	}
	if few, err := LearnRange([][]byte{[]byte("a"), []byte("a"), []byte("b")}, 8); err != nil || few.Partitions() != 2 {
		t.Errorf("two distinct keys: %d partitions, %v", few.Partitions(), err)
	}
	if _, err := LearnRange(nil, 3); err == nil {
		t.Error("no samples are accepted")
	}
}

func TestByAttributeWithARealBroker(t *testing.T) {
	b := daybooktest.Start(t, daybooktest.Partitions(4))
	region := func(r *kgo.Record) string {
		for _, h := range r.Headers {
			if h.Key == "region" {
				return string(h.Value)
			}
		}
		return ""
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.AllowAutoTopicCreation(),
		kgo.RecordPartitioner(ByAttribute(region, map[string]int{"eu": 0, "us": 1, "moon": 99}, ByKey())))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, c := range []struct {
		region, key string
		want        int
	}{{"eu", "k", 0}, {"us", "k", 1}, {"asia", "foobar", ForKey([]byte("foobar"), 4)}, {"moon", "21", ForKey([]byte("21"), 4)}} {
		r := &kgo.Record{Topic: "orders", Key: []byte(c.key), Headers: []kgo.RecordHeader{{Key: "region", Value: []byte(c.region)}}}
		if err := cl.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if int(r.Partition) != c.want {
			t.Errorf("region %s, key %s: partition %d, want %d", c.region, c.key, r.Partition, c.want)
		}
	}
}
