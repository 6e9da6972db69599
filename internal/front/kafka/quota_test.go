package kafka

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/records"
)

// setQuota sets a quota for an entity given as "user=name client-id=name"; a name
// of * is the default.
func setQuota(c *rawConn, entity, key string, value float64, remove bool) codes.Code {
	c.t.Helper()
	req := kmsg.NewPtrAlterClientQuotasRequest()
	e := kmsg.NewAlterClientQuotasRequestEntry()
	for part := range strings.FieldsSeq(entity) {
		typ, name, _ := strings.Cut(part, "=")
		p := kmsg.NewAlterClientQuotasRequestEntryEntity()
		p.Type = typ
		if name != "*" {
			p.Name = &name
		}
		e.Entity = append(e.Entity, p)
	}
	op := kmsg.NewAlterClientQuotasRequestEntryOp()
	op.Key, op.Value, op.Remove = key, value, remove
	e.Ops = append(e.Ops, op)
	req.Entries = append(req.Entries, e)
	return call[*kmsg.AlterClientQuotasResponse](c, req, 1).Entries[0].ErrorCode
}

// describeQuotas lists what matches; a filter is type=name, type=* (default) or type (any).
func describeQuotas(c *rawConn, strict bool, filters ...string) string {
	c.t.Helper()
	req := kmsg.NewPtrDescribeClientQuotasRequest()
	req.Strict = strict
	for _, f := range filters {
		typ, name, named := strings.Cut(f, "=")
		q := kmsg.NewDescribeClientQuotasRequestComponent()
		q.EntityType, q.MatchType = typ, kmsg.QuotasMatchTypeAny
		if named && name == "*" {
			q.MatchType = kmsg.QuotasMatchTypeDefault
		} else if named {
			q.MatchType, q.Match = kmsg.QuotasMatchTypeExact, &name
		}
		req.Components = append(req.Components, q)
	}
	resp := call[*kmsg.DescribeClientQuotasResponse](c, req, 1)
	if resp.ErrorCode != 0 {
		return fmt.Sprintf("error %d", resp.ErrorCode)
	}
	var out []string
	for _, e := range resp.Entries {
		var s []string
		for _, p := range e.Entity {
			name := "*"
			if p.Name != nil {
				name = *p.Name
			}
			s = append(s, p.Type+"="+name)
		}
		for _, v := range e.Values {
			s = append(s, fmt.Sprintf("%s:%v", v.Key, v.Value))
		}
		out = append(out, strings.Join(s, " "))
	}
	return strings.Join(out, "; ")
}

func TestClientQuotasAreKept(t *testing.T) {
	b := startBroker(t)
	c := b.dial()
	for _, tc := range []struct {
		entity, key string
		value       float64
		want        codes.Code
	}{
		{"user=*", "producer_byte_rate", 1e9, 0},
		{"user=ann", "consumer_byte_rate", 2e9, 0},
		{"user=ann client-id=app", "request_percentage", 150.5, 0},
		{"client-id=app", "producer_byte_rate", 3e9, 0},
		{"client-id=app", "controller_mutation_rate", 1000, 0},
		{"user=ann", "no_such_rate", 1, codes.InvalidRequest},
		{"user=ann", "producer_byte_rate", 0, codes.InvalidRequest},
		{"user=ann", "producer_byte_rate", 1.5, codes.InvalidRequest},
		{"", "producer_byte_rate", 1, codes.InvalidRequest},
		{"ip=127.0.0.1", "connection_creation_rate", 1, codes.UnsupportedVersion},
		{"user=a user=b", "producer_byte_rate", 1, codes.InvalidRequest},
		{"user=", "producer_byte_rate", 1, codes.InvalidRequest},
	} {
		if got := setQuota(c, tc.entity, tc.key, tc.value, false); got != tc.want {
			t.Errorf("%s %s=%v: error %d, want %d", tc.entity, tc.key, tc.value, got, tc.want)
		}
	}
	b.restart()
	c = b.dial()
	const (
		all  = "user=* producer_byte_rate:1e+09"
		ann  = "user=ann consumer_byte_rate:2e+09"
		both = "user=ann client-id=app request_percentage:150.5"
		app  = "client-id=app producer_byte_rate:3e+09 controller_mutation_rate:1000"
	)
	for _, tc := range []struct{ got, want string }{
		{describeQuotas(c, false), strings.Join([]string{app, all, ann, both}, "; ")},
		{describeQuotas(c, false, "user"), strings.Join([]string{all, ann, both}, "; ")},
		{describeQuotas(c, true, "user"), all + "; " + ann},
		{describeQuotas(c, true, "user=*"), all},
		{describeQuotas(c, false, "user=ann"), ann + "; " + both},
		{describeQuotas(c, true, "user=ann", "client-id=app"), both},
		{describeQuotas(c, false, "user=bob"), ""},
		{describeQuotas(c, false, "ip"), "error 35"},
		{describeQuotas(c, false, "user", "user"), "error 42"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s\nwant %s", tc.got, tc.want)
		}
	}
	if code := setQuota(c, "user=*", "producer_byte_rate", 0, true); code != 0 {
		t.Fatalf("removing: error %d", code)
	}
	if got := describeQuotas(c, true, "user=*"); got != "" {
		t.Errorf("after it was removed: %s", got)
	}
}

// timed gives how long f took.
func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// TestRow30Quotas: who uses more than its quota is told so at once, and its next
// request waits; others are not held up.
func TestRow30Quotas(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	admin := b.dial()
	const rate = 20_000
	payload := values(strings.Repeat("x", 10*rate+4000)) // the window's worth, and 0.2 s more
	produced(admin, "t", 0, batch(t, records.None, 1, payload...))
	if code := setQuota(admin, "client-id=raw", "consumer_byte_rate", rate, false); code != 0 {
		t.Fatalf("error %d", code)
	}
	c := b.dial()
	var throttle int32
	if d := timed(func() { throttle = call[*kmsg.FetchResponse](c, fetchRequest("t", 0), 11).ThrottleMillis }); d > 10*time.Second {
		t.Errorf("the answer took %v", d)
	}
	if throttle < 100 || throttle > 300 {
		t.Errorf("throttle_time_ms is %d, want about 200", throttle)
	}
	if d := timed(func() { call[*kmsg.MetadataResponse](c, metadataRequest(), 9) }); d < time.Duration(throttle-50)*time.Millisecond {
		t.Errorf("the next request was served after %v", d)
	}

	for name, key := range map[string]string{"produce": "producer_byte_rate", "request": "request_percentage"} {
		limit := float64(rate)
		if name == "request" {
			limit = 0.0001
		}
		if code := setQuota(admin, "user=ANONYMOUS", key, limit, false); code != 0 {
			t.Fatalf("%s: error %d", name, code)
		}
		resp := call[*kmsg.ProduceResponse](b.dial(), produceRequest("t", 0, batch(t, records.None, 1, payload...)), 9)
		if resp.ThrottleMillis < 50 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Errorf("%s: throttle_time_ms is %d, error %d", name, resp.ThrottleMillis, resp.Topics[0].Partitions[0].ErrorCode)
		}
		b.ahead.Add(int64(time.Hour)) // everything is paid
		if code := setQuota(b.dial(), "user=ANONYMOUS", key, 0, true); code != 0 {
			t.Fatalf("%s: error %d", name, code)
		}
		admin = b.dial()
	}
}

func TestMutationQuota(t *testing.T) {
	b := startBroker(t)
	c := b.dial()
	if code := setQuota(c, "user=*", "controller_mutation_rate", 1, false); code != 0 {
		t.Fatalf("error %d", code)
	}
	if got := createTopics(c, 7, false, newTopic("saved-up", 11, 1)); got[0].ErrorCode != 0 {
		t.Fatalf("what was saved up: error %d", got[0].ErrorCode)
	}
	if got := createTopics(b.dial(), 7, false, newTopic("refused", 1, 1)); got[0].ErrorCode != codes.ThrottlingQuotaExceeded {
		t.Errorf("beyond the quota: error %d", got[0].ErrorCode)
	}
	// Older versions do not know the error: they are served, and delayed.
	if got := createTopics(b.dial(), 5, false, newTopic("delayed", 1, 1)); got[0].ErrorCode != 0 {
		t.Errorf("an old version: error %d", got[0].ErrorCode)
	}
}
