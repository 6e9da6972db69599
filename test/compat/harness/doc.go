//go:build unix

// Package harness owns what every compatibility suite needs: the pinned versions, the
// set-up from the package registries, a broker to test (Daybook or a real Kafka), running
// programs with a log and a time limit, and reading the result of a Go test suite against
// a list of expected exceptions.
//
// It knows no suite; package main lists them.
package harness
