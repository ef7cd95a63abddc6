// Package wire is lttcp's format of packets (docs/lttcp.md): it reads and writes
// bytes, and knows nothing of connections. All numbers are of fixed length, in
// network byte order. The decoder takes any bytes: what is not a packet of this
// version, or does not have the connection's check, is an error, and nothing is
// allocated for it.
//
// A packet is the payload of a UDP datagram. It begins with 6 bytes:
//
//	1  version (1) in the upper half, kind in the lower
//	1  flags: 1 window reduced, 2 congestion experienced, 4 the highest number
//	   arrived just now
//	4  check: CRC-32C over the key of the connection and direction (16 bytes),
//	   then the packet without the check
//
// What follows, by kind, with the length of each field in bytes:
//
//	1  request          client's token 8, window 4, longest segment 2
//	2  grant            client's token 8, server's token 8, window 4,
//	                    longest segment 2
//	3  segment          number 4, place in the stream 4, place in the block 1,
//	                    size of the block's segments 2, data
//	4  FEC              number 4, start of the block 4, place in the block 1,
//	                    size 2, segments of the block 1, length of the last 2, data
//	5  acknowledgement  next byte expected 4, last byte that may be sent 4,
//	                    highest number 4, numbers received 4, counts of what
//	                    follows 1 (half each); up to 4 ranges received (from 4,
//	                    to 4), those that grew last first; up to 8 blocks, the
//	                    oldest first (start 4, packets received 1)
//	6  end              number 4, place in the stream 4
//	7  probe            number 4; asks a receiver without room
//	8  reset            nothing
//
// The key is the tokens of sender and receiver, the sender's first. For the request
// it is zeros, for the grant the client's token and zeros.
package wire
