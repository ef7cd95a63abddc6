// Package executor walks through a run sheet: [Lead] on the client, [Serve] on
// the server, [Attend] on a relay. It is the one piece of code for live,
// disconnected and virtual-time runs; what differs comes in as [Config].
//
// Comes in: an encoded sheet, a journal, and how to start drivers and speak to
// the radio. Goes out: journal records. Imports protocols/contract and
// internal leaves; it opens no sockets and starts no processes itself.
package executor
