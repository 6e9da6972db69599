package format

import (
	"errors"
	"fmt"
	"io"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// BadFrame says that no good frame starts at Pos. Whether that is the end of
// what was written, a torn tail or damage is for the caller to find out: what
// Search finds after it, and what was promised, tell.
type BadFrame struct {
	Pos int64
	Err error
	// Head is set when the frame's head is right (only its data is not): it
	// names what was hit, and where the next frame starts.
	Head *Frame
}

// Error names the position and the reason.
func (e *BadFrame) Error() string { return fmt.Sprintf("position %d: %v", e.Pos, e.Err) }

// Unwrap gives the reason.
func (e *BadFrame) Unwrap() error { return e.Err }

// Scanner reads the frames of one data file in order. It is not for concurrent use.
type Scanner struct {
	id    model.FileID
	size  int64
	heads bool
	win   window
	pos   int64     // of the next frame
	last  model.LSN // of the frame before; 0 before the first
	frame Frame
}

// ScanMode says how much of a frame is read.
type ScanMode uint8

// Whole frames are checked and have data; Heads are only checked themselves.
const (
	Whole ScanMode = iota
	Heads
)

// NewScanner scans the frames of f, which is the file id and has size bytes.
// Frames of another file id are not taken.
func NewScanner(f vfs.File, id model.FileID, size int64, mode ScanMode) *Scanner {
	s := &Scanner{id: id, size: size, heads: mode == Heads, pos: HeaderSize}
	s.win = window{f: f, size: size, ahead: 256 << 10}
	if s.heads {
		s.win.ahead = 16 << 10
	}
	return s
}

// Header reads the file header.
func (s *Scanner) Header() (FileHeader, error) {
	b, err := s.win.at(0, HeaderSize)
	if err != nil {
		return FileHeader{}, err
	}
	return DecodeFileHeader(b)
}

// Pos is where the next frame is looked for.
func (s *Scanner) Pos() int64 { return s.pos }

// LSN is that of the last good frame; 0 before the first.
func (s *Scanner) LSN() model.LSN { return s.last }

// SkipTo makes pos the place of the next frame.
func (s *Scanner) SkipTo(pos int64) { s.pos = pos }

// Next gives the next frame; it and its data are valid until the next call. At
// the file's end it is io.EOF, where no good frame starts a *BadFrame; then the
// scanner stays there until Search or SkipTo.
func (s *Scanner) Next() (*Frame, error) {
	if s.pos >= s.size {
		return nil, io.EOF
	}
	err := s.read()
	if err == nil && s.last != 0 && s.frame.LSN <= s.last {
		err = ErrSequence
	}
	if err != nil {
		bad := &BadFrame{Pos: s.pos, Err: err}
		if errors.Is(err, ErrDataCRC) {
			bad.Head = &s.frame
		}
		return nil, bad
	}
	s.last = s.frame.LSN
	s.pos += int64(s.frame.Length)
	return &s.frame, nil
}

// read fills s.frame from s.pos.
func (s *Scanner) read() error {
	b, err := s.win.at(s.pos, FrameHeaderSize)
	if err != nil {
		return err
	}
	h, err := decodeFrameHeader(b)
	if err != nil {
		return err
	}
	if h.File != s.id {
		return ErrStale
	}
	need := int64(h.Length)
	if s.pos+need > s.size {
		return ErrShort
	}
	if s.heads {
		need = h.HeadSize()
	}
	if b, err = s.win.at(s.pos, need); err != nil {
		return err
	}
	if s.heads {
		return s.frame.DecodeHead(b, s.pos)
	}
	return s.frame.Decode(b, s.pos)
}

// Search moves to the next good frame after the bad one at Pos, and reports
// whether there is one. A position that cannot be read is passed over.
func (s *Scanner) Search() bool {
	start := s.pos
	for s.pos = start + Align; s.pos < s.size; s.pos += Align {
		b, err := s.win.at(s.pos, FrameHeaderSize)
		if err != nil {
			continue
		}
		if h, err := decodeFrameHeader(b); err != nil || h.File != s.id || h.LSN <= s.last {
			continue
		}
		if s.read() == nil {
			return true
		}
	}
	s.pos = start
	return false
}

// window reads ahead in a file.
type window struct {
	f     vfs.File
	size  int64
	ahead int64
	buf   []byte // the bytes from off on
	off   int64
	mem   []byte // buf's memory
}

// at gives the n bytes from pos on, valid until the next call.
func (w *window) at(pos, n int64) ([]byte, error) {
	if pos+n > w.size {
		return nil, ErrShort
	}
	if pos >= w.off && pos+n <= w.off+int64(len(w.buf)) {
		return w.buf[pos-w.off:][:n], nil
	}
	want := min(max(n, w.ahead), w.size-pos)
	if int64(len(w.mem)) < want {
		w.mem = make([]byte, want)
	}
	w.buf, w.off = nil, 0
	got, err := w.f.ReadAt(w.mem[:want], pos)
	if int64(got) < n {
		if err == nil || errors.Is(err, io.EOF) {
			return nil, ErrShort
		}
		return nil, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	w.buf, w.off = w.mem[:got], pos
	return w.buf[:n], nil
}
