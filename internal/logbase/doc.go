// Package logbase has the parts that the logs of all stores share: the queue of batches with its
// group commit, the newest events in memory with their watchers, and the checksums by which events
// form a chain. A store adds what differs: how a group is written, and how older events are read.
package logbase
