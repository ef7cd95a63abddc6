// Package core is lttcp without sockets: one end of a connection takes packets,
// the application's bytes and the time, and gives packets, bytes and a deadline.
// Pure; may import: lttcp/wire. docs/lttcp.md says what is the paper's, and what
// was decided where the paper is silent.
//
// From the top down: listener.go and conn.go (handshake, what goes out next, end),
// window.go (congestion window, timeout), blocks.go (the stream in blocks, what
// of it is sent next), feedback.go (acknowledgements, erasures, repairs),
// inbox.go (what arrives), code.go (Reed–Solomon).
//
// TestChannels runs both ends over random channels with losses, bursts, reordering,
// duplicates, damaged and foreign packets, packets sent back, outages and slow
// readers (-channels 2000 runs more): every byte arrives once, in order, intact;
// memory is bounded; deadlines lie in the future; both ends finish.
package core
