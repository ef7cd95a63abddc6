// Package path exchanges packets of Linktrial's own between the nodes of a run, over the
// radio: [Respond] answers on a node that does not lead, [Paths] asks on the one that
// does. Comes in: addresses, interface and key. Goes out: what passes, and what the far
// node says of itself.
package path
