// Package signing keeps the keys that sign run sheets, and decides which digests
// of drivers new sheets name, so that agents can trust what they are told to run.
//
// Comes in: a data folder, the catalog's drivers, people's approvals. Goes out:
// signatures, public keys, digests.
package signing
