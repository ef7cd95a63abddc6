// Package wire is lttcp's format of packets (docs/lttcp.md): it reads and writes
// bytes, and knows nothing of connections. All numbers are of fixed length, in
// network byte order. The decoder takes any bytes: what is not a packet of this
// version, or does not have the connection's check, is an error, and nothing is
// allocated for it.
package wire
