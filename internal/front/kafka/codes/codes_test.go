package codes

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

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
