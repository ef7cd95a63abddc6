// Package executor walks through a run sheet: [Lead] on the client, [Serve] on
// the server, [Attend] on a relay. Flows that start on a node that does not
// lead are carried there on the leading node's orders ([Carrier]), and people's
// orders are obeyed at trial boundaries ([Commands]). It is the one piece of
// code for live, disconnected and virtual-time runs; what differs comes in as
// [Config].
//
// Comes in: an encoded sheet, a journal, and how to start drivers, reach the
// other nodes and speak to the radio. Goes out: journal records.
package executor
