//go:build unix

// Package flights sends one million real flight events through the producers of five client
// libraries and reads them back through consumer groups of five, of three members each, one
// of which is killed half way. It owns the check of what came out.
//
// What must hold, for each topic and each group:
//   - no record is lost, none is made up, and no byte of one is altered;
//   - a record comes twice only when the killed member had written it after its last known
//     offset commit;
//   - the records of one key come in the order of the file, in one partition;
//   - a key's partition is the one that Kafka's murmur2 partitioner names, whoever produced.
package flights
