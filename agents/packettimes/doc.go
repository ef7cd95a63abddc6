// Package packettimes notes when the packets of transfers pass the interfaces of this
// node's radios, whatever their drivers say. A program in the kernel (eBPF, at a packet
// socket) sees each packet that passes, keeps a few moments of each connection to a
// listener of the run, and hands no packet over.
//
// Comes in: the interfaces, and the sizes of payloads. Goes out: for each connection how
// long it took from when its payload had begun until as many bytes as the payload has had
// left the node, or had arrived at it; for each listener how many packets arrived for it,
// or from it; and the bytes that pass at each listener's port.
package packettimes
