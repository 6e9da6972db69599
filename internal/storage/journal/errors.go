package journal

import (
	"fmt"

	"github.com/daybook-mq/daybook/internal/model"
)

var (
	errClosed = &model.Error{Class: model.ClassClosed, Op: "append", Detail: "the broker is shutting down; retry on its next start"}
	errHard   = &model.Error{
		Class: model.ClassDiskFull, Op: "append",
		Detail: "the disk's free space is below the hard limit; delete topics or records, lower retention, or add room, then retry",
	}
)

func tooLarge(size, limit int64) error {
	return &model.Error{
		Class: model.ClassTooLarge, Op: "append",
		Detail: fmt.Sprintf("the write has %d bytes, the journal takes at most %d at once; send less per request", size, limit),
	}
}

func diskFull(cause error) error {
	return &model.Error{
		Class: model.ClassDiskFull, Op: "append", Cause: cause,
		Detail: "the disk has no room for the next journal file; delete topics or records, lower retention, or add room, then retry",
	}
}

func storageFailed(op string, cause error) error {
	return &model.Error{
		Class: model.ClassStorage, Op: op, Cause: cause,
		Detail: "the journal's disk failed; the broker stops, restart it when the disk is sound",
	}
}
