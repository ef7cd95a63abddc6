// Package radioset lists a node's network interfaces, with what speaks for and against each
// being the radio's, and sets up the radio that a person points at. Comes in: what the
// kernel and other programs' files tell, and orders. Goes out: the list, interfaces with
// the address, MTU and routes of an order, kept over restarts and given back as they were,
// and in words what was done or why not.
//
// The files, from the top down:
//
//   - told: which interfaces the orchestrator has
//   - named: radios that came with the agent's configuration
//   - order: what people order, tried and taken back
//   - keep: the radios that are kept, in the state folder
//   - relay: packets between the two radios of a relay
//   - apply: an interface as it is to be, and as it was before
//   - refuse: why an order is not carried out; pure
//   - setting: what an order says
//   - list: the interfaces as they are
//   - verdict: what speaks for and against an interface; pure
//   - owner: which program configures an interface
//   - forwarding: whether the kernel passes on packets that arrive at an interface
package radioset
