// Package harness makes a protocol driver of thirty lines: a driver says how
// its protocol listens and connects, the harness does all the rest of the
// driver contract (docs/driver-contract.md): parameters, events, the measured
// transfer, samples, limits, signals and exit codes.
//
// Comes in: a manifest, a [Driver], the process's standard streams. Goes out:
// event lines and an exit code. May import: protocols/contract, internal
// leaves and the standard library. All but manifest.go is also in the projects that
// protocols/templates writes, so it needs nothing but the standard library.
package harness
