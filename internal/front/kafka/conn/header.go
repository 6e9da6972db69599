package conn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Limits of what a request header may hold.
const (
	// headerMin is key, version and correlation id.
	headerMin = 8
	// maxTags bounds the tagged fields of a header.
	maxTags = 10_000
)

var errShortHeader = errors.New("request ends inside its header")

// header is a request header of version 1 or 2 (KIP-482). Version 2 adds tagged
// fields; none is known, so they are passed over.
type header struct {
	key, version  int16
	correlationID int32
	clientID      string
}

// parseFixed reads what every version of the header has. Both are needed to know
// the version of the rest.
func parseFixed(frame []byte) (header, []byte, error) {
	if len(frame) < headerMin {
		return header{}, nil, errShortHeader
	}
	return header{
		key:           int16(binary.BigEndian.Uint16(frame)),
		version:       int16(binary.BigEndian.Uint16(frame[2:])),
		correlationID: int32(binary.BigEndian.Uint32(frame[4:])),
	}, frame[headerMin:], nil
}

// parseRest reads the client id and, when flexible, the tagged fields; it returns
// the body.
func (h *header) parseRest(b []byte, flexible bool) ([]byte, error) {
	if len(b) < 2 {
		return nil, errShortHeader
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	b = b[2:]
	if n > len(b) {
		return nil, errShortHeader
	}
	if n > 0 {
		h.clientID = strings.ToValidUTF8(string(b[:n]), "?")
		b = b[n:]
	}
	if !flexible {
		return b, nil
	}
	return skipTags(b)
}

// skipTags passes over one section of tagged fields.
func skipTags(b []byte) ([]byte, error) {
	count, b, err := uvarint(b)
	if err != nil {
		return nil, err
	}
	if count > maxTags {
		return nil, fmt.Errorf("request header has %d tagged fields, %d are allowed", count, maxTags)
	}
	for range count {
		if _, b, err = uvarint(b); err != nil {
			return nil, err
		}
		var size uint32
		if size, b, err = uvarint(b); err != nil {
			return nil, err
		}
		if uint64(size) > uint64(len(b)) {
			return nil, errShortHeader
		}
		b = b[size:]
	}
	return b, nil
}

// uvarint reads an unsigned 32-bit varint.
func uvarint(b []byte) (uint32, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > 1<<32-1 {
		return 0, nil, errShortHeader
	}
	return uint32(v), b[n:], nil
}

// appendResponseHeader appends a response header: version 1 (with an empty tag
// section) for flexible responses, except that ApiVersions always has version 0,
// because a client reads it before it knows the broker.
func appendResponseHeader(dst []byte, correlationID int32, resp kmsg.Response) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if resp.IsFlexible() && resp.Key() != keyApiVersions {
		dst = append(dst, 0)
	}
	return dst
}

const keyApiVersions = 18
