// Package ingest stores what agents deliver: journal records first, as the raw
// truth, and what follows from them (attempts, flows, samples, listeners, …)
// in the same transaction. Delivery is at-least-once, the effect exactly-once.
// Deliveries of samples alone, which most are while a trial runs, take one
// statement; all others a transaction of several.
//
// Comes in: batches of records, and what nodes sign of their journals. Goes out: how far a
// journal is committed, and whether what was signed fits it.
package ingest
