// Package netif knows whether a node's radio interface can carry what is sent over it: it
// is there and has its address, nobody else has that address, and packets to the other
// nodes leave through it. Comes in: the interface and addresses that a run uses. Goes
// out: what is not in order, for people, and since when.
package netif
