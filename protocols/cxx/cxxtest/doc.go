// Package cxxtest runs the drivers written in C++ in tests: it builds them,
// starts their processes, reads their events, and puts a lossy UDP relay
// between two ends.
//
// Comes in: a driver's name. Goes out: events and what passed the relay. May
// import: protocols/contract, protocols/protocoltest; used by tests only.
package cxxtest
