// Package mptcp is the kernel's Multipath TCP (RFC 8684): what a process asks of its
// path manager, and what a connection tells of its subflows. Comes in: addresses of
// this node's radios, connected sockets. Goes out: endpoints and limits in the network
// namespace, which are removed again, and the metrics of each path.
package mptcp
