// Package lttcp is loss-tolerant TCP after Subramanian, Kalyanaraman and
// Ramakrishnan, 2006: a reliable stream of bytes over UDP sockets, in user space,
// that reduces its window for ECN marks alone and repairs erasures with FEC sent
// ahead and on request. docs/lttcp.md specifies it; lttcp/core decides, this
// package has the sockets, the clock and the goroutines.
//
// May import: protocols/datagram, lttcp/core, internal.
package lttcp
