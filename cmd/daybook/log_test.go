package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// dataDir makes a data directory with 20 batches in it and gives the name of the
// journal file that holds them. The store stays open until close.
func dataDir(t *testing.T) (dir, file string, closeStore func()) {
	t.Helper()
	dir = t.TempDir()
	s, err := partlog.Open(context.Background(), partlog.Options{FS: vfs.OS{}, Dir: filepath.ToSlash(dir), JournalFileSize: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	id := model.PartitionID{Topic: model.TopicID{7}}
	for range 20 {
		b := records.NewBuilder(records.Meta{FirstTimestamp: 1000, ProducerID: model.NoProducer, BaseSequence: -1})
		b.Add(0, []byte("key"), bytes.Repeat([]byte("value"), 100), nil)
		batch, err := b.Build(0)
		if err != nil {
			t.Fatal(err)
		}
		batch.SetBaseOffset(s.Log(id).End())
		done := make(chan error, 1)
		if err := s.Append(&storage.Group{
			Entries: []storage.Entry{{Kind: storage.EntryBatches, Part: id, Base: batch.BaseOffset(), Last: batch.LastOffset(), Data: batch}},
			Done:    func(_ model.LSN, err error) { done <- err },
		}); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	data, err := filepath.Glob(filepath.Join(dir, "*.data"))
	if err != nil || len(data) == 0 {
		t.Fatalf("%v, %v", data, err)
	}
	return dir, data[0], func() {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLog(t *testing.T) {
	dir, file, closeStore := dataDir(t)
	want := func(r result, code int, texts ...string) {
		t.Helper()
		for _, s := range texts {
			if !strings.Contains(r.out+r.err, s) {
				t.Fatalf("%q is not in\n%s%s", s, r.out, r.err)
			}
		}
		if r.code != code {
			t.Fatalf("exit code %d, want %d\n%s%s", r.code, code, r.out, r.err)
		}
	}
	// Beside the live store.
	want(daybook(t, "127.0.0.1:1", "", "log", "verify", dir), 0, "20 batches", "no damage")
	want(daybook(t, "127.0.0.1:1", "", "log", "dump", "--data", dir), 0, "offsets 0 to 0", "frame  LSN 1", "journal")
	dump := daybook(t, "127.0.0.1:1", "", "log", "dump", "--data", dir, "--records", "-o", "json")
	rows := 0
	for line := range strings.Lines(dump.out) {
		var row struct{ Type string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if row.Type == "record" {
			rows++
		}
	}
	if rows != 20 || dump.code != 0 {
		t.Fatalf("%d records dumped, exit code %d", rows, dump.code)
	}
	if r := daybook(t, "127.0.0.1:1", "", "log", "dump", "--data", dir, "77"); r.code != 1 || !strings.Contains(r.err, "no such data file") {
		t.Fatalf("%+v", r)
	}
	damage(t, file, 4096+1200)
	want(daybook(t, "127.0.0.1:1", "", "log", "verify", dir), 1, "DAMAGE", filepath.Base(file), "offsets 1 to 1", "log repair")
	want(daybook(t, "127.0.0.1:1", "", "log", "repair", dir, "--dry-run"), 0, "would mend", filepath.Base(file))
	want(daybook(t, "127.0.0.1:1", "", "log", "repair", dir), 2, "--yes")
	want(daybook(t, "127.0.0.1:1", "", "log", "repair", dir, "--yes"), 1, "in use by a running broker", "stop the broker")
	closeStore()
	want(daybook(t, "127.0.0.1:1", "", "log", "repair", dir, "--yes"), 0, "mended", ".damaged")
	want(daybook(t, "127.0.0.1:1", "", "log", "verify", dir), 0, "19 batches", "no damage", "set aside")
	want(daybook(t, "127.0.0.1:1", "", "log", "repair", dir, "--yes"), 0, "nothing to mend")
	want(daybook(t, "127.0.0.1:1", "", "log", "verify", filepath.Join(dir, "none")), 1, "not a data directory", "--data")
	want(daybook(t, "127.0.0.1:1", "", "log", "verify", t.TempDir()), 1, "not a data directory")
}

// damage writes over a few bytes.
func damage(t *testing.T, file string, pos int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("damage"), pos); err != nil {
		t.Fatal(err)
	}
}
