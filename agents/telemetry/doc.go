// Package telemetry reads the state of radios, and of the laptops
// beside them: SNMP, JSON by HTTP, position from gpsd, the host's power supply.
// A source that does not answer costs a bounded time and one clear sentence.
//
// Comes in: the sources of a radio profile. Goes out: readings, as the journal
// has them.
package telemetry
