package compact

import (
	"hash/maphash"

	"github.com/daybook-mq/daybook/internal/model"
)

// KeyMap remembers the newest offset of each key, by a 128-bit hash that differs
// from process to process, so that no client can choose keys that collide. Its
// memory is bounded: when it is full, the pass ends there.
type KeyMap struct {
	slots []slot
	used  int
	most  int // slots
}

// slot is free when at is 0; else at is the offset plus one.
type slot struct {
	hash [2]uint64
	at   int64
}

const (
	slotBytes  = 24
	firstSlots = 1 << 10
)

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// NewKeyMap makes a map of at most budget bytes (for a moment half as much more,
// while it grows).
func NewKeyMap(budget int) *KeyMap {
	most := firstSlots
	for 2*most*slotBytes <= budget {
		most *= 2
	}
	return &KeyMap{slots: make([]slot, firstSlots), most: most}
}

func hashOf(key []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(seeds[0], key), maphash.Bytes(seeds[1], key)}
}

// Len is the number of keys.
func (m *KeyMap) Len() int { return m.used }

// Put notes that key occurs at o, unless a newer place is known. It refuses a new
// key when the map is full.
func (m *KeyMap) Put(key []byte, o model.Offset) bool {
	s := m.find(m.slots, hashOf(key))
	if s.at == 0 {
		if 4*(m.used+1) > 3*len(m.slots) {
			if !m.grow() {
				return false
			}
			s = m.find(m.slots, hashOf(key))
		}
		s.hash = hashOf(key)
		m.used++
	}
	s.at = max(s.at, int64(o)+1)
	return true
}

// Newest gives the newest offset of key, -1 if it does not occur.
func (m *KeyMap) Newest(key []byte) model.Offset {
	return model.Offset(m.find(m.slots, hashOf(key)).at) - 1
}

// find gives the slot of h, or the free one where it belongs.
func (m *KeyMap) find(slots []slot, h [2]uint64) *slot {
	mask := uint64(len(slots) - 1)
	for i := h[0] & mask; ; i = (i + 1) & mask {
		if s := &slots[i]; s.at == 0 || s.hash == h {
			return s
		}
	}
}

func (m *KeyMap) grow() bool {
	if len(m.slots) >= m.most {
		return false
	}
	slots := make([]slot, 2*len(m.slots))
	for _, s := range m.slots {
		if s.at != 0 {
			*m.find(slots, s.hash) = s
		}
	}
	m.slots = slots
	return true
}
