package conn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Request is one request of one connection, its header parsed. Byte fields of
// the body point into the request's frame, which is never reused: who keeps them
// keeps the frame.
type Request struct {
	Conn          *Conn
	Key           int16
	Version       int16
	CorrelationID int32
	ClientID      string
	Size          int // bytes of the frame
	Received      time.Time

	room    *claim        // of the answer; nil unless the handler asked
	waited  time.Duration // of the handler, for others
	started atomic.Int64  // nanoseconds that a pipelined handler took to start
}

// Waited tells that the handler has waited for d for something to happen, which
// is no work for this client.
func (r *Request) Waited(d time.Duration) { r.waited += d }

// answerLeast is the least room that an answer gets, in bytes.
const answerLeast = 1 << 20

// Room asks for room in memory for an answer with want bytes of bulk data, and
// says how much of it there is; it waits for some. 0 means that there is none:
// too many large answers are on their way. The room is given back when the answer
// is sent. Handlers that answer at once only (Handle) may ask.
func (r *Request) Room(want int) int {
	if r.room == nil {
		r.room = r.Conn.srv.answers.open(r.Conn.tooSlow)
	}
	return int(r.room.take(int64(want), int64(min(want, answerLeast)), budgetWait, r.Conn.srv.closing))
}

// Used says how many bytes of the room the answer takes; the rest is given back.
func (r *Request) Used(n int) {
	if r.room != nil {
		r.room.keep(int64(n))
	}
}

// Busy is how long the broker has worked on the request.
func (r *Request) Busy() time.Duration {
	if d := r.started.Load(); d > 0 {
		return time.Duration(d)
	}
	return time.Since(r.Received) - r.waited
}

// Principal is who asks, for authorisation and quotas.
func (r *Request) Principal() string { return r.Conn.Principal() }

// User is the principal's name without its type, as quotas name users.
func (r *Request) User() string {
	_, name, _ := strings.Cut(r.Principal(), ":")
	return name
}

// Handler answers requests of one key, one at a time for each connection. A nil
// response means that the client expects none. An error closes the connection;
// what the client should learn belongs into the response. ctx ends when the
// server closes.
type Handler[R any] func(ctx context.Context, r *Request, in *R) (kmsg.Response, error)

// Starter is a handler that does not hold up the requests behind it: it starts
// its work and returns. done must be called exactly once, from any goroutine, and
// does not block. Answers leave in the order of the requests all the same.
type Starter[R any] func(ctx context.Context, r *Request, in *R, done func(kmsg.Response, error))

// API is one row of the table: a key, the versions that are served, what serves them.
type API struct {
	Key, Min, Max int16
	// Refused versions below Min that are advertised none the less (0 if none):
	// old clients draw conclusions from the range.
	AdvertiseMin int16

	newBody func() kmsg.Request
	// One of the two is set.
	handle func(context.Context, *Request, kmsg.Request) (kmsg.Response, error)
	start  func(context.Context, *Request, kmsg.Request, func(kmsg.Response, error))
	// parked answers may be long in coming, and nobody waits for them when the
	// connection ends.
	parked bool
	// shared bodies keep strings that point into the frame.
	shared bool
	// count, for requests that carry bulk data, tells before decoding how many
	// elements the body's arrays have together.
	count func(version int16, body []byte) (int, error)
}

// message is a pointer to a kmsg request struct.
type message[R any] interface {
	*R
	kmsg.Request
}

// Handle makes a table row served by h.
func Handle[R any, P message[R]](minVersion, maxVersion int16, h Handler[R]) API {
	a := newAPI[R, P](minVersion, maxVersion)
	a.handle = func(ctx context.Context, r *Request, in kmsg.Request) (kmsg.Response, error) {
		return h(ctx, r, (*R)(in.(P)))
	}
	return a
}

// Start makes a table row served by a pipelined handler.
func Start[R any, P message[R]](minVersion, maxVersion int16, s Starter[R]) API {
	a := newAPI[R, P](minVersion, maxVersion)
	a.start = func(ctx context.Context, r *Request, in kmsg.Request, done func(kmsg.Response, error)) {
		s(ctx, r, (*R)(in.(P)), done)
	}
	return a
}

func newAPI[R any, P message[R]](minVersion, maxVersion int16) API {
	return API{
		Key: P(new(R)).Key(), Min: minVersion, Max: maxVersion, AdvertiseMin: minVersion,
		newBody: func() kmsg.Request { return P(new(R)) },
	}
}

// Shared makes the body's strings point into the frame: no garbage, but a
// handler must clone what it keeps after its answer.
func (a API) Shared() API { a.shared = true; return a }

// Advertised widens the advertised range down to version from; requests below
// Min are refused.
func (a API) Advertised(from int16) API { a.AdvertiseMin = from; return a }

// Parked says that answers may take as long as other clients like (a group's
// rebalance): a connection that ends does not wait for them.
func (a API) Parked() API { a.parked = true; return a }

// Bulk lets the key have frames up to the server's limit, where others end at
// maxPlainFrame. count walks a body without allocating.
func (a API) Bulk(count func(version int16, body []byte) (int, error)) API {
	a.count = count
	return a
}

// Table finds the row for a key. It does not change once it is made.
type Table struct {
	rows []API // by key
}

// NewTable checks rows: one for each key, and the codec knows the versions.
func NewTable(rows ...API) (*Table, error) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b API) int { return int(a.Key) - int(b.Key) })
	for i, a := range rows {
		if i > 0 && rows[i-1].Key == a.Key {
			return nil, fmt.Errorf("api key %d is registered twice", a.Key)
		}
		if a.Min > a.Max || a.Max > a.newBody().MaxVersion() {
			return nil, fmt.Errorf("api key %d: versions %d-%d cannot be served", a.Key, a.Min, a.Max)
		}
	}
	return &Table{rows: rows}, nil
}

// Lookup finds the row of key.
func (t *Table) Lookup(key int16) (*API, bool) {
	i, ok := slices.BinarySearchFunc(t.rows, key, func(a API, k int16) int { return int(a.Key) - int(k) })
	if !ok {
		return nil, false
	}
	return &t.rows[i], true
}

// Ranges lists every key with its advertised versions, by key.
func (t *Table) Ranges() []kmsg.ApiVersionsResponseApiKey {
	out := make([]kmsg.ApiVersionsResponseApiKey, 0, len(t.rows))
	for _, a := range t.rows {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = a.Key, a.AdvertiseMin, a.Max
		out = append(out, k)
	}
	return out
}
