package partlog

import (
	"context"
)

// pace lets background work yield to the journal.
func (s *Store) pace(ctx context.Context, bytes int) {}
