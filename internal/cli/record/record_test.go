package record

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestPatterns(t *testing.T) {
	r := &kgo.Record{
		Topic: "t", Partition: 3, Offset: 42, Timestamp: time.UnixMilli(1700000000123),
		Key: []byte("k"), Value: []byte("v\x00\xff"),
		Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}, {Key: "a", Value: []byte{}}},
	}
	null := &kgo.Record{Topic: "t", Value: []byte{}}
	cases := []struct {
		r             *kgo.Record
		pattern, want string
	}{
		{r, `%t/%p/%o %k`, "t/3/42 k"},
		{r, `%v`, "v\x00\xff"},
		{r, `%s`, "v\x00\xff"},
		{r, `%T %D`, "1700000000123 2023-11-14T22:13:20.123Z"},
		{r, `%h %H`, "a=1,b=-,a= 3"},
		{r, `%K %V %S`, "1 3 3"},
		{r, `%xk %xv %bk %bv`, "6b 7600ff aw== dgD/"},
		{r, `100%% \\ \t\n\r\0\x7f.`, "100% \\ \t\n\r\x00\x7f."},
		{null, `%k|%v|%K|%V|%xk|%bk`, "-||-1|0|-|-"},
		{null, `plain`, "plain"},
	}
	for _, c := range cases {
		p, err := Pattern(c.pattern, "-")
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got := string(p([]byte("#"), c.r)); got != "#"+c.want {
			t.Errorf("%s: %q, want %q", c.pattern, got, "#"+c.want)
		}
	}
	for _, bad := range []string{"%", "%q", "%x", "%xq", `\`, `\q`, `\x`, `\x1`, `\xgg`, "a%"} {
		if _, err := Pattern(bad, ""); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestNamed(t *testing.T) {
	r := &kgo.Record{Value: []byte("hi")}
	for format, want := range map[string]string{"": "hi\n", "text": "hi\n", "raw": "hi", "hex": "6869\n", "base64": "aGk=\n", "<%v>": "<hi>"} {
		p, err := Named(format, "NULL")
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p(nil, r)); got != want {
			t.Errorf("%q: %q, want %q", format, got, want)
		}
	}
	raw, err := Named("raw", "NULL")
	if err != nil || len(raw(nil, &kgo.Record{})) != 0 {
		t.Errorf("a null value is not nothing in raw (%v)", err)
	}
	if _, err := Named("texts", ""); err == nil {
		t.Error("an unknown format is taken")
	}
}

func TestFromJSON(t *testing.T) {
	cases := []struct {
		in    string
		key   []byte
		value []byte
		heads string
		part  int32
	}{
		{`{}`, nil, nil, "", -1},
		{`{"key":null,"value":null,"partition":4}`, nil, nil, "", 4},
		{`{"key":"","value":""}`, []byte{}, []byte{}, "", -1},
		{`{"key_base64":"","value_base64":"AP8="}`, []byte{}, []byte{0, 255}, "", -1},
		{`{"value":{"a": [1, 2]}}`, nil, []byte(`{"a": [1, 2]}`), "", -1},
		{`{"value":12.50,"key":true}`, []byte("true"), []byte("12.50"), "", -1},
		{`{"headers":{"z":"1","a":"2","n":null}}`, nil, nil, "z=1 a=2 n=<nil>", -1},
		{`{"headers":[{"key":"a","value":"1"},{"key":"a","value_base64":"AQ=="},{"key":"n"}]}`, nil, nil, "a=1 a=\x01 n=<nil>", -1},
		{`{"topic":"x","offset":7,"timestamp_type":"append"}`, nil, nil, "", -1},
	}
	for _, c := range cases {
		r, err := FromJSON([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		var heads []string
		for _, h := range r.Headers {
			v := string(h.Value)
			if h.Value == nil {
				v = "<nil>"
			}
			heads = append(heads, h.Key+"="+v)
		}
		if !same(r.Key, c.key) || !same(r.Value, c.value) || strings.Join(heads, " ") != c.heads || r.Partition != c.part {
			t.Errorf("%s: key %#v, value %#v, headers %q, partition %d", c.in, r.Key, r.Value, heads, r.Partition)
		}
	}
	for _, bad := range []string{``, `x`, `[]`, `{`, `{"valeu":1}`, `{} {}`, `{"value":"a","value_base64":"YQ=="}`, `{"value_base64":"!"}`, `{"headers":3}`, `{"headers":{"a":1}}`, `{"headers":["a"]}`, `{"partition":"1"}`, `{"timestamp":1.5}`} {
		if r, err := FromJSON([]byte(bad)); err == nil {
			t.Errorf("%s is taken: %+v", bad, r)
		}
	}
}

// same tells null from empty.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// FuzzJSON: what is printed as JSON is read back as the same record, and no
// input makes reading panic.
func FuzzJSON(f *testing.F) {
	f.Add([]byte("k"), []byte("v"), "h", []byte("x"), true, true)
	f.Add([]byte{}, []byte{0xff, 0}, "", []byte{}, false, true)
	f.Add([]byte(`{"key":1}`), []byte("\u2028<&>"), "h\xff", []byte{0x80}, true, false)
	f.Fuzz(func(t *testing.T, key, value []byte, name string, head []byte, hasKey, hasValue bool) {
		_, _ = FromJSON(value)
		in := &kgo.Record{Partition: 2, Timestamp: time.UnixMilli(5), Headers: []kgo.RecordHeader{{Key: strings.ToValidUTF8(name, "?"), Value: head}, {Key: "n"}}}
		if hasKey {
			in.Key = append([]byte{}, key...)
		}
		if hasValue {
			in.Value = append([]byte{}, value...)
		}
		line := printJSON(nil, in)
		if bytes.Count(line, []byte("\n")) != 1 {
			t.Fatalf("more than a line: %q", line)
		}
		out, err := FromJSON(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if !same(in.Key, out.Key) || !same(in.Value, out.Value) || out.Partition != 2 || !out.Timestamp.Equal(in.Timestamp) ||
			len(out.Headers) != 2 || out.Headers[0].Key != in.Headers[0].Key || !same(out.Headers[0].Value, in.Headers[0].Value) && in.Headers[0].Value != nil || out.Headers[1].Value != nil {
			t.Fatalf("%q: %+v", line, out)
		}
	})
}
