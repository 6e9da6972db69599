// Package size holds the ceilings of what an idle broker costs: memory, open files,
// time to start. It measures the real binary in a process of its own; it knows
// nothing of throughput, which package bench measures.
package size
