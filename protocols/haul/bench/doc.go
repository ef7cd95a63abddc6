// Package bench measures haul in real time beside other transports: a bulk
// transfer over a fast clean link, and what a short message costs on the wire.
// It has tests and benchmarks alone. Comes in: nothing. Goes out: tables.
// Imports haul; the other transports are libraries that only these tests use.
package bench
