// Package core is haul without its sockets: a state machine that takes packets,
// messages and the time, and gives packets and the time at which it wants to be
// asked again. It is pure: no goroutine, no clock, no socket, and the same calls
// give the same packets. docs/haul-protocol.md specifies it.
//
// Times are durations since any fixed moment. A Conn is used by one goroutine
// at a time.
//
// It has three rooms. The types sender and receiver are the two directions of a
// connection; neither knows the other, nor keys, addresses or the handshake.
// Conn embeds both, hands each what concerns it, and has the rest. What a room
// needs of another one, Conn puts into its fields or gives as an argument.
//
// The files, from the top down; none uses one above it (a test in
// internal/importrules holds this):
//
// Conn, which joins the rooms:
//
//   - listener: which connection a packet belongs to, and new connections
//   - deadline: when a connection wants to be called, and what is due then
//   - receive: a packet that has arrived, opened and handed to the rooms by frames
//   - transmit: the next packet, of what the sender chooses and the receiver owes
//   - handshake: hello, answer, retry and refusal, at both ends
//   - ending: close and abort
//   - address: a client that moves
//   - application: messages, to the sender and from the receiver
//   - conn: the state of a connection, and encryption of what it sends
//
// The room sender:
//
//   - acked: what an acknowledgement tells
//   - timeout: what its absence tells
//   - choose: what the next packet carries, and that it has gone out
//   - encode: messages into symbols, symbols into repairs, all of a packet's size
//   - pace: how much may be sent how fast, and how often acknowledgements come
//   - queue: what waits to be sent or to arrive, and giving it up
//   - sender: the room's state
//
// The room receiver:
//
//   - arrived: symbols into messages
//   - receiver: the room's state, and the acknowledgements that it owes
//
// What the rooms consist of; each knows no more than its own fields:
//
//   - symbol, outbox, flight: symbols, messages and packets that were sent
//   - inbox, symbolset: messages and symbols that have arrived
//   - config, stats, message: what the application gives and gets
//   - size, rate, loss: estimates of the path
//   - timers, clock, ring: times, and a queue with numbers
package core
