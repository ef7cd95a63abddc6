// Package signing makes agents trust what they are told to run: it keeps the
// key that signs run sheets, knows which digests of drivers new sheets name,
// and answers TrustService.
//
// Comes in: a data folder, the catalog's drivers, people's approvals. Goes out:
// signatures, public keys, digests. Imports orchestrator/store,
// orchestrator/catalog, orchestrator/campaign, internal/signature,
// orchestrator/rpc/reply, internal/driverdigest, internal/wholefile and api/gen.
package signing
