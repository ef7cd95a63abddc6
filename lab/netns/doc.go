// Package netns is the real-time lab: a network namespace for each node of a
// topology, a separate control network between them and the orchestrator, and
// the emulated radios, all on one machine.
//
//	node namespaces:   radio0 (TUN, to the emulator)   control0 (veth, to the control bridge)
//	control namespace: bridge with a forwarder to the orchestrator on the machine's loopback
//
// Comes in: a radio network and where the orchestrator listens. Goes out: a
// running lab, and its removal, also of one that a killed process left behind.
package netns
