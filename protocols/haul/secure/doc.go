// Package secure protects the packets of haul: the handshake that agrees on
// keys, the sealing and opening of packets, the refusal of replayed ones, and
// the cookies that keep a server from being used for floods.
//
// Comes in: messages and packets as bytes, random bytes as an [io.Reader], time
// as a value. Goes out: bytes, keys and errors. Pure: it opens no sockets,
// reads no clock and draws no randomness of its own. May import: internal.
//
// The handshake is Noise_NN_25519_AESGCM_SHA256, or
// Noise_NNpsk0_25519_AESGCM_SHA256 with a pre-shared key (The Noise Protocol
// Framework, revision 34): one message in each direction. Without a pre-shared
// key it protects from those who listen, not from one who is in the middle. A
// message is
//
//	mode (1 byte: 1 plain, 2 NN, 3 NNpsk0) | Noise message | CRC-32C (NN's first message only)
//
// NN's first message has no authentication tag: the CRC makes a damaged one
// recognizable before the other end keeps anything of it. In plain mode the
// Noise message is the payload, and both messages end with the CRC.
//
// Packets are sealed with AES-256-GCM, the nonce is 4 zero bytes and the packet
// number, big-endian, as Noise has it. The key changes with every 2^26 packet
// numbers ([Keys]).
package secure
