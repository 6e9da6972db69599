// Package partlog keeps every partition's log as extents over shared files.
//
// It owns: the memory tail (one budget over all partitions), the life of sealed
// journal files (adopted as mixed segments, or flushed into segments sorted by
// partition), segment files and their indexes, merge, compaction, retention by
// whole files, the checkpoint, and recovery. It does not know producers,
// transactions, watermarks other than the durable end, or topics' names.
package partlog
