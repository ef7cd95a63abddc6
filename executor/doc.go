// Package executor executes a run sheet: [Lead] on the client, [Serve] on the
// server, [Attend] on a relay. Flows that start on a node that does not lead are
// run there on the leading node's assignments ([Carrier]), and people's commands
// are applied at trial boundaries ([Commands]). The live run, the disconnected
// run and the run in virtual time are this one piece of code; what differs comes
// in as [Config].
//
// Comes in: an encoded sheet, a journal, and how to start drivers, reach the
// other nodes and control the emulated radio. Goes out: journal records.
//
// Its files, from the top down; none uses one above it (a test in
// internal/importrules holds this):
//
// A node's part in a run:
//
//   - lead, serve: on the client, and on the server or a relay
//   - check: the small transfers of a preflight
//   - carrier: flows on this node for the leading one
//   - pathanswer: what this node tells the leading one of itself
//
// From trial to trial, on the leading node:
//
//   - walk: the order of trials, and of attempts at one
//   - waitout: before a trial is repeated because of the apparatus
//   - look: the plan's rule to stop by
//   - judgement: whether the last trial is to be repeated
//   - command: what people ask meanwhile
//   - progress: how far the run is, in the journal and in memory
//
// One attempt:
//
//   - attempt: from the channel's begin to the verdict
//   - prestart: drivers of the next trial
//   - remote: flows of other nodes
//   - emulator: the radio's channel
//   - apparatus: what the flows need and is not in order
//
// Whose fault a failure is, by an exchange of packets with the other nodes:
//
//   - path: what the exchange says of a flow that failed
//   - portcheck: the same of one port
//   - known: what is known of the paths
//
// The flows' values against what else was seen:
//
//   - hold: the counters of the radio's interface, and the emulated radio's report
//   - packets: the packets that this node sent and got
//   - air: all packets on the emulated radio
//   - host, control: time that the processors kept back, and control traffic
//
// Listeners:
//
//   - keep: has a process up for each
//   - server: one process, from its start to its end
//   - arrivals: packets that arrived for it
//   - listener: what the driver is told, and what the journal and the node are told of it
//   - received, transfers: the payload that it hands over, and of which attempt it is
//
// Flows:
//
//   - flows: those of an attempt on one node
//   - flow: one transfer's client process
//
// The node, which all of them hold:
//
//   - interface, stall: when its radio's interface was not in order, or its agent did not run
//   - radios: which radio a treatment uses
//   - node: the sheet, the journal and what else was configured; the run's begin and end
//   - inorder: which listeners are up, and where
//   - samples, record: what the journal gets
//
// What comes in, and what follows from it alone:
//
//   - config, observer, assignment: the rest of the program
//   - exchange, port: what nodes exchange to check a path and a port, and what that shows
//   - crash, process, stops, clock: driver processes and time
//   - roles, probe, knowledge: what follows from the sheet
package executor
