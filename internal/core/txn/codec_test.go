package txn

import (
	"reflect"
	"testing"

	"github.com/daybook-mq/daybook/internal/core/statelog"
)

func TestRecordRoundTrip(t *testing.T) {
	for _, want := range []Txn{
		fresh("a", 7),
		{ID: "b", ProducerID: 1, Epoch: 3, LastEpoch: 2, PrevProducerID: 9, NextProducerID: 11, TimeoutMS: 5, State: PrepareCommit, Version: V2, Parts: Parts{"x": {0, 4}, "y": {2}}, StartedMS: 10, UpdatedMS: 20},
	} {
		id, got, ok, err := readRecord(want.record())
		if err != nil || !ok || id != want.ID || !reflect.DeepEqual(*got, want) {
			t.Errorf("%+v came back as %q, %+v, %v, %v", want, id, got, ok, err)
		}
	}
	if id, got, ok, err := readRecord(statelog.Record{Key: recordKey("gone")}); id != "gone" || got != nil || !ok || err != nil {
		t.Errorf("a removal: %q, %+v, %v, %v", id, got, ok, err)
	}
}

// FuzzReadRecord: no bytes make it panic, and what it accepts it writes again so
// that it reads the same.
func FuzzReadRecord(f *testing.F) {
	for _, x := range []Txn{fresh("a", 7), {ID: "b", LastEpoch: 2, State: Ongoing, Parts: Parts{"x": {0, 4}}}} {
		r := x.record()
		f.Add(r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		_, got, ok, err := readRecord(statelog.Record{Key: key, Value: value})
		if err != nil || !ok || got == nil {
			return
		}
		_, again, ok, err := readRecord(got.record())
		if err != nil || !ok || show(again) != show(got) {
			t.Fatalf("%+v came back as %+v, %v, %v", got, again, ok, err)
		}
	})
}
