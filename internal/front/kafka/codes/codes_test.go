package codes

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/model"
)

// TestEveryClassHasACode walks the classes up to the last one.
func TestEveryClassHasACode(t *testing.T) {
	for c := model.ClassInternal; c <= model.ClassUnsupported; c++ {
		code, ok := byClass[c]
		if !ok {
			t.Errorf("class %d has no code", c)
			continue
		}
		if code == None || kerr.ErrorForCode(code) == nil {
			t.Errorf("class %d becomes %d, which is no error of the protocol", c, code)
		}
	}
	if len(byClass) != int(model.ClassUnsupported)+1 {
		t.Errorf("%d classes are mapped, the last class is %d", len(byClass), model.ClassUnsupported)
	}
}

func TestFor(t *testing.T) {
	full := fmt.Errorf("append: %w", model.Err(model.ClassOverloaded, "wait"))
	for _, tc := range []struct {
		key  int16
		err  error
		want Code
	}{
		{0, nil, None},
		{0, errors.New("boom"), UnknownServerError},
		{0, full, NotEnoughReplicas},
		{3, full, ThrottlingQuotaExceeded},
		{1, model.Err(model.ClassCorrupt, ""), KafkaStorageError},
		{0, model.Err(model.ClassCorrupt, ""), CorruptMessage},
	} {
		if got := For(tc.key, tc.err); got != tc.want {
			t.Errorf("For(%d, %v) = %d, want %d", tc.key, tc.err, got, tc.want)
		}
	}
}

// TestNumbers compares a spread of constants with another implementation's table.
func TestNumbers(t *testing.T) {
	for _, tc := range []struct {
		got  Code
		want *kerr.Error
	}{
		{UnknownServerError, kerr.UnknownServerError},
		{NotLeaderForPartition, kerr.NotLeaderForPartition},
		{MessageTooLarge, kerr.MessageTooLarge},
		{UnsupportedVersion, kerr.UnsupportedVersion},
		{KafkaStorageError, kerr.KafkaStorageError},
		{FetchSessionIDNotFound, kerr.FetchSessionIDNotFound},
		{MemberIDRequired, kerr.MemberIDRequired},
		{InvalidRecord, kerr.InvalidRecord},
		{ProducerFenced, kerr.ProducerFenced},
		{UnknownTopicID, kerr.UnknownTopicID},
		{TransactionAbortable, kerr.TransactionAbortable},
		{RebootstrapRequired, kerr.RebootstrapRequired},
	} {
		if tc.got != tc.want.Code {
			t.Errorf("%s is %d, want %d", tc.want.Message, tc.got, tc.want.Code)
		}
	}
}

// TestEveryReasonHasACode walks the reasons of groups up to the last one.
func TestEveryReasonHasACode(t *testing.T) {
	for r := refusal.None + 1; r <= refusal.InvalidCommitSize; r++ {
		if code, ok := byReason[r]; !ok || code == None || kerr.ErrorForCode(code) == nil {
			t.Errorf("reason %d (%v) becomes %d", r, r, code)
		}
		if ReasonText(r) == nil || *ReasonText(r) == "" {
			t.Errorf("reason %d has no text", r)
		}
	}
	if len(byReason) != int(refusal.InvalidCommitSize)+1 {
		t.Errorf("%d reasons are mapped, the last is %d", len(byReason), refusal.InvalidCommitSize)
	}
	if ForReason(refusal.InvalidCommitSize+1) != UnknownServerError || ReasonText(refusal.None) != nil {
		t.Error("an unknown reason, or none, is not told apart")
	}
}
