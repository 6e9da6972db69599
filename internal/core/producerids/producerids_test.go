package producerids

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daybook-mq/daybook/internal/storage/partlog"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

func open(t *testing.T, fs vfs.FS) (*Allocator, *partlog.Store) {
	t.Helper()
	store, err := partlog.Open(t.Context(), partlog.Options{FS: fs, Dir: "data", Logger: slog.New(slog.DiscardHandler), JournalFileSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return a, store
}

// TestIDsAreNeverGivenTwice: many callers, several blocks, power failures at any
// moment.
func TestIDsAreNeverGivenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		given := map[int64]bool{}
		fs := vfs.NewMem(0)
		for seed := range uint64(10) {
			slow := vfs.NewSlow(fs, func() time.Duration { return 5 * time.Millisecond })
			a, store := open(t, slow)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 300 {
						id, err := a.Next(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						if given[id] {
							t.Errorf("%d is given twice", id)
						}
						given[id] = true
						mu.Unlock()
					}
				})
			}
			time.Sleep(time.Duration(seed) * time.Millisecond)
			// What is given out up to here is on the disk; what comes later is not asked of
			// the clone.
			mu.Lock()
			next := fs.Crash(seed)
			highest := int64(-1)
			for id := range given {
				highest = max(highest, id)
			}
			mu.Unlock()
			wg.Wait()
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if seed%2 == 0 { // power failed at that moment: the later ids were never given
				b, store := open(t, next)
				id, err := b.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if id <= highest {
					t.Errorf("%d is given after a crash, %d was given before", id, highest)
				}
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func TestNextGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := vfs.NewSlow(vfs.NewMem(0), func() time.Duration { return time.Second })
		a, store := open(t, slow)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := a.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}
