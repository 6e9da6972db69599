// Package record is how one record looks outside the broker: as a JSON object,
// as text by a pattern, as hex or base64; and how it is read back from the same
// forms. It knows nothing of connections.
package record

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Object is a record as a JSON object. Bytes that are not UTF-8 stand in the
// fields that end in _base64, and the plain field is then absent. A null key or
// value is null; an empty one is "".
type Object struct {
	Topic         string   `json:"topic"`
	Partition     int32    `json:"partition"`
	Offset        int64    `json:"offset"`
	Timestamp     int64    `json:"timestamp"` // Unix milliseconds
	TimestampType string   `json:"timestamp_type"`
	Key           *Text    `json:"key,omitempty"`
	KeyBase64     string   `json:"key_base64,omitempty"`
	Value         *Text    `json:"value,omitempty"`
	ValueBase64   string   `json:"value_base64,omitempty"`
	Headers       []Header `json:"headers"`
}

// Header is one header; a record may have several of one name.
type Header struct {
	Key         string `json:"key"`
	Value       *Text  `json:"value,omitempty"`
	ValueBase64 string `json:"value_base64,omitempty"`
}

// Text is a string that may be null.
type Text struct {
	Null   bool
	String string
}

// MarshalJSON prints null or the string.
func (t *Text) MarshalJSON() ([]byte, error) {
	if t.Null {
		return []byte("null"), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t.String); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ToObject gives the JSON form of r.
func ToObject(r *kgo.Record) Object {
	o := Object{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
		Timestamp: r.Timestamp.UnixMilli(), TimestampType: "create", Headers: []Header{},
	}
	if r.Attrs.TimestampType() == 1 {
		o.TimestampType = "append"
	}
	o.Key, o.KeyBase64 = text(r.Key)
	o.Value, o.ValueBase64 = text(r.Value)
	for _, h := range r.Headers {
		value, b64 := text(h.Value)
		o.Headers = append(o.Headers, Header{h.Key, value, b64})
	}
	return o
}

// marshal prints o as one line.
func marshal(o Object) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(o)
	return b.Bytes(), err
}

func text(b []byte) (*Text, string) {
	switch {
	case b == nil:
		return &Text{Null: true}, ""
	case utf8.Valid(b):
		return &Text{String: string(b)}, ""
	}
	return nil, base64.StdEncoding.EncodeToString(b)
}

// input is what FromJSON reads: the fields of Object that a producer chooses.
// Topic, offset and timestamp_type may be there and say nothing.
type input struct {
	Topic         string          `json:"topic"`
	Offset        int64           `json:"offset"`
	TimestampType string          `json:"timestamp_type"`
	Partition     *int32          `json:"partition"`
	Timestamp     *int64          `json:"timestamp"`
	Key           json.RawMessage `json:"key"`
	KeyBase64     *string         `json:"key_base64"`
	Value         json.RawMessage `json:"value"`
	ValueBase64   *string         `json:"value_base64"`
	Headers       json.RawMessage `json:"headers"`
}

type inputHeader struct {
	Key         string          `json:"key"`
	Value       json.RawMessage `json:"value"`
	ValueBase64 *string         `json:"value_base64"`
}

// FromJSON reads a record from the JSON form. A value that is an object, an
// array, a number or a boolean is sent as that JSON text. Headers may also be an
// object of strings. The partition is -1 when the object names none.
func FromJSON(line []byte) (*kgo.Record, error) {
	var in input
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, fmt.Errorf("not a JSON record: %w", err)
	}
	if dec.More() {
		return nil, fmt.Errorf("not a JSON record: more than one object on a line")
	}
	r := &kgo.Record{Partition: -1}
	if in.Partition != nil {
		r.Partition = *in.Partition
	}
	if in.Timestamp != nil {
		r.Timestamp = time.UnixMilli(*in.Timestamp)
	}
	var err error
	if r.Key, err = decode("key", in.Key, in.KeyBase64); err != nil {
		return nil, err
	}
	if r.Value, err = decode("value", in.Value, in.ValueBase64); err != nil {
		return nil, err
	}
	r.Headers, err = decodeHeaders(in.Headers)
	return r, err
}

func decode(name string, raw json.RawMessage, b64 *string) ([]byte, error) {
	if b64 != nil {
		if raw != nil {
			return nil, fmt.Errorf("%s and %s_base64 are both there; give one", name, name)
		}
		b, err := base64.StdEncoding.DecodeString(*b64)
		if err != nil {
			return nil, fmt.Errorf("%s_base64: %w", name, err)
		}
		if b == nil {
			b = []byte{}
		}
		return b, nil
	}
	switch {
	case len(raw) == 0 || bytes.Equal(raw, []byte("null")):
		return nil, nil
	case raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return []byte(s), nil
	}
	return bytes.Clone(raw), nil
}

func decodeHeaders(raw json.RawMessage) ([]kgo.RecordHeader, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	var headers []kgo.RecordHeader
	if raw[0] == '{' {
		dec := json.NewDecoder(bytes.NewReader(raw)) // by token: the order of the fields is the order of the headers
		if _, err := dec.Token(); err != nil {
			return nil, fmt.Errorf("headers: %w", err)
		}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, fmt.Errorf("headers: %w", err)
			}
			var value *string
			if err := dec.Decode(&value); err != nil {
				return nil, fmt.Errorf("headers: the value of %q must be a string or null", name)
			}
			h := kgo.RecordHeader{Key: name.(string)}
			if value != nil {
				h.Value = []byte(*value)
			}
			headers = append(headers, h)
		}
		return headers, nil
	}
	var list []inputHeader
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("headers: an object of strings or an array of {key, value}: %w", err)
	}
	for _, in := range list {
		value, err := decode("headers: value", in.Value, in.ValueBase64)
		if err != nil {
			return nil, err
		}
		headers = append(headers, kgo.RecordHeader{Key: in.Key, Value: value})
	}
	return headers, nil
}
