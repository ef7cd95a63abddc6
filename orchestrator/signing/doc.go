// Package signing makes agents trust what they are told to run: it keeps the
// key that signs run sheets, knows which digests of drivers new sheets name,
// and answers TrustService.
//
// Comes in: a data folder, the catalog's drivers, people's approvals. Goes out:
// signatures, public keys, digests.
package signing
