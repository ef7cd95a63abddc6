// Package transfer is a node's part in the small transfers of a preflight, one of each
// treatment of a plan, which the executor carries as it would in a run. Comes in: a run
// sheet of these transfers. Goes out: what of each this node saw, its packets included.
package transfer
