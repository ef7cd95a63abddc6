// Package datagram is UDP sockets for protocols in user space: many packets in a
// system call, ECN marks, and the path's MTU.
//
// Comes in: packets to send. Goes out: packets received, and the errors that the
// kernel reports of a path. Linux only; may import: internal.
//
// Packets are sent with sendmmsg(2) and received with recvmmsg(2). Where the
// kernel can, runs of equal packets pass through it as one (UDP_SEGMENT and
// UDP_GRO, udp(7)); who uses a socket does not notice. A goroutine that waits
// holds no thread, and wakes when the network or [Socket.Close] wakes it.
package datagram
