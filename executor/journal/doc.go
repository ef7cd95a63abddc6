// Package journal is the append-only record of everything that happened in a run
// on one node, in the order it happened: a file of checked JSON lines, synced at
// trial boundaries. Comes in: [Record]. Goes out: the file, and records read back
// from it after a crash or for delivery.
package journal
