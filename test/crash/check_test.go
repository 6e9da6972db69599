package crash

import (
	"slices"
	"strings"
	"testing"
)

// Each bad log is blamed for what it is, and a good one is not.
func TestCheck(t *testing.T) {
	a, b, c := ID{1, 2, 1}, ID{1, 2, 2}, ID{1, 3, 1}
	at := func(o int64, id ID) Stored { return Stored{o, id.KeyBytes(), id.Value()} }
	altered := at(1, b)
	altered.Value = slices.Clone(altered.Value)
	altered.Value[len(altered.Value)-1] ^= 1
	other := at(1, b)
	other.Key = c.KeyBytes()
	for _, x := range []struct {
		name, want string
		stored     []Stored
	}{
		{"good", "", []Stored{at(0, a), at(1, b), at(2, c)}},
		{"lost at the end", "is not there", []Stored{at(0, a), at(1, b)}},
		{"a gap", "follows where", []Stored{at(0, a), at(2, c)}},
		{"altered", "not what was sent", []Stored{at(0, a), altered, at(2, c)}},
		{"another key", "has the key", []Stored{at(0, a), other, at(2, c)}},
		{"another record", "was acknowledged", []Stored{at(0, a), at(1, ID{9, 9, 9}), at(2, c)}},
		{"order", "comes after", []Stored{at(0, a), at(1, b), at(2, c), at(3, a)}},
		{"empty", "a value of 0 bytes", []Stored{at(0, a), {Offset: 1}, at(2, c)}},
	} {
		l := NewLedger(1)
		for o, id := range []ID{a, b, c} {
			if err := l.Add(Acked{id, Place{0, int64(o)}}); err != nil {
				t.Fatal(err)
			}
		}
		errs := l.Check(0, 0, x.stored)
		switch {
		case x.want == "" && len(errs) > 0, x.want != "" && len(errs) == 0:
			t.Errorf("%s: %v, want %q", x.name, errs, x.want)
		case x.want != "" && !strings.Contains(errs[0].Error(), x.want):
			t.Errorf("%s: %v, want %q", x.name, errs, x.want)
		}
	}
	l := NewLedger(1)
	if l.Add(Acked{a, Place{0, 7}}) != nil || l.Add(Acked{b, Place{0, 7}}) == nil {
		t.Error("one offset was acknowledged twice")
	}
	if l.Forget(0, 7) != 1 || l.Len() != 0 {
		t.Error("the tail is still owed")
	}
}
