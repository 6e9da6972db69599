// Package crash kills the real broker with SIGKILL while producers without idempotence
// load it, starts it again over the same directory, and holds what is then in the log
// against what was acknowledged. Power failures, where unsynced data is lost as well,
// belong to the crash tests of internal/storage, which own the disk.
package crash
