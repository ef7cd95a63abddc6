// Package agent ties together what runs on a node: it keeps runs in a state
// folder, resumes them after a crash without any control link, and brings them to
// the states that the orchestrator wants.
//
// Comes in: [Config], the orchestrator's assignments with people's commands, and
// the preflights that it wants; or a run sheet file. Goes out: journals, in the
// state folder and delivered, reports of preflights, and readings of the node's
// radio. With in-band control, a policy of agents/silence keeps the agent's calls off
// the radio while trials run.
//
// It has three rooms. The type node is what all parts share: configuration, session,
// drivers, faults. A run is this node's part in one run, and an execution that part
// while the executor works on it; both know the node and no other run. The agent embeds
// a node, and has the runs.
//
// The files, from the top down; none uses one above it (a test in
// internal/importrules holds this):
//
// The agent, which does what the orchestrator wants:
//
//   - start: an agent from its start to its end, or one run from a file
//   - identity: the node's certificate
//   - health: what the node tells of itself between runs
//   - assignment: what the orchestrator wants, and whether to believe it
//   - setup: the radios that people set up on the node
//   - transfers, preflight: preflights
//   - agent: the runs, from their first assignment until they are stored
//
// A run and its execution:
//
//   - lifecycle: a run from its sheet to the delivery of its journal, again when its disk works again
//   - execute: what a node does as client, server or relay
//   - observe: what the executor tells of its trials, and what is recorded at them
//   - paths, traffic, radios: what the executor needs to know of the network
//   - execution: its state
//   - watcher: telemetry during a run
//   - journal: the run's journal, opened and completed
//   - disk, alive: a disk that fails, and a process that ends
//   - run: its state: how far it may go, and people's commands
//
// The node:
//
//   - lab, fault, trust: who vouches for its radio, what is wrong with it, whom it believes
//   - node: its state
//   - drivers, telemetry: what starts its drivers and what reads its radio
//   - config, folder: its configuration, and its state folder, which one agent at a time has
//
// What the rooms consist of; each knows no more than what it is given:
//
//   - commands, note: what a run's folder has of it
//   - configurers: which drivers may change the node's network
//   - source: flows of other nodes of a lab
//   - reboot, stall: a node whose kernel was started again, an agent that was stopped
package agent
