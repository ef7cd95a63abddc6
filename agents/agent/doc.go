// Package agent ties together what runs on a node: it keeps runs in a state
// folder, resumes them after a crash without any control link, and brings them to
// the states that the orchestrator wants.
//
// Comes in: [Config], the orchestrator's assignments with people's commands, and
// the preflights that it wants; or a run sheet file. Goes out: journals, in the
// state folder and delivered, reports of preflights, and readings of the node's
// radio.
//
// An agent.run is a run in the state folder; its execution gives the executor
// what it needs and observes it. With in-band control, a policy of agents/silence
// keeps the agent's calls off the radio while trials run.
package agent
