// Package link is a link between two network namespaces of its own, over a TUN
// device in each: this process carries every packet, and so it knows what passed
// and when, and can hold, lose, delay and count packets.
//
// Comes in: the addresses of both ends, and [Conditions] for either direction.
// Goes out: the namespaces, and the [Traffic] that each direction has seen. It
// knows nothing of drivers and of checks. May import: internal leaves, netlink.
//
// What its values rest on:
//   - A packet reaches the other end only when its lane writes it to the other
//     device. A byte in a packet that is held, delayed or dropped cannot have been
//     answered.
//   - [Traffic.Came] and [Traffic.Marked] are taken just after a packet was read:
//     its sender had sent it before.
//   - [Traffic.First] and [Traffic.Answered] are taken just before a packet is
//     written, and so is the moment that [Lane.Release] returns: the other end
//     receives the packet after them.
//
// A busy machine delays packets, and keeps all of this.
package link
