// Package session is an agent's connection to the orchestrator. All calls are
// opened by the agent, are repeated for ever with growing pauses, and can be
// silenced at any moment, because with in-band control every packet would be
// on the air beside the measured transfer.
//
// Comes in: a URL, the node's identity, journals and reports of preflights to
// deliver. Goes out: what the orchestrator wants of this node, clock offsets.
package session
