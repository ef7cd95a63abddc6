// Package nodes knows which agents are registered and connected, and answers
// their polls with what each node is to do. Comes in: registrations, polls,
// deliveries, the engine's assignments. Goes out: the list of nodes,
// assignments, nodes without contact.
package nodes
