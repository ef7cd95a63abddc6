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
// Its files, from the top down; none uses one above it:
//
//   - lead, serve, attend: the three roles
//   - walk: from trial to trial; command: what people ask meanwhile; judgement:
//     whether the last trial is to be repeated
//   - attempt: one execution of a trial, with prestart (drivers of the next
//     trial), remote (flows of other nodes), emulator (the radio's channel),
//     apparatus (what the flows need and is not in order), hold (the flows'
//     figures against what was seen) and air (the radio's packets); waitout:
//     before a trial is repeated because of the apparatus
//   - listener: one treatment's server process, with transfers (what belongs
//     to which attempt), received (the payload that it hands over) and inorder
//     (whether it is up); carrier: another node's flows
//   - flow: one transfer's client process, with samples and knowledge
//   - progress, node, record: what all of them hold
//   - config, observer, assignment, process: what comes in
package executor
