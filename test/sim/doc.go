// Package sim runs random clients against a broker that is killed, slowed down and
// restarted, and has package history judge what the clients were told. Run drives
// any Cluster: one in this process over a network and a disk in memory, whose time
// is a synctest bubble's, or real processes.
//
// It knows the clients (franz-go) and how to hurt a broker; it does not decide what
// is right.
package sim
