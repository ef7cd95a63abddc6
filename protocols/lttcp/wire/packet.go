package wire

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Version is the protocol's version, in the first byte of every packet.
const Version = 1

// Kind says what a packet is.
type Kind uint8

// Kinds of packets.
const (
	Syn    Kind = iota + 1 // asks for a connection
	SynAck                 // grants it
	Data                   // a segment of the stream
	FEC                    // a packet of a block's code
	Ack                    // what has arrived
	Fin                    // the stream ends here
	Probe                  // asks for an acknowledgement
	Reset                  // the connection is gone
)

// Flags of a packet.
const (
	// FlagReduced: the sender has reduced its window (CWR of RFC 3168).
	FlagReduced = 1 << iota
	// FlagCongestion: a packet arrived with the mark "congestion experienced" (ECE).
	FlagCongestion
	// FlagEcho: the packet with the highest number has just arrived, so the time
	// since it was sent is a round-trip time.
	FlagEcho

	knownFlags = FlagReduced | FlagCongestion | FlagEcho
)

// Lengths of headers in bytes. A segment's header with IP's and UDP's is 45
// bytes; TCP/IP's is 40, with timestamps 52.
const (
	common     = 6                  // version and kind, flags, check
	DataHeader = common + 4 + 4 + 3 // number, sequence, place in the block, size
	FECHeader  = common + 4 + 4 + 6
	synLength  = common + 8 + 4 + 2
	grantLen   = common + 8 + 8 + 4 + 2
	ackLength  = common + 4*4 + 1
	finLength  = common + 8
	probeLen   = common + 4
)

// Bounds of what an acknowledgement carries: as many ranges as fit into TCP's
// options beside nothing else (RFC 2018), and the state of the oldest blocks.
const (
	MaxRanges = 4
	MaxBlocks = 8
)

// MaxAck is the length of the longest acknowledgement.
const MaxAck = ackLength + MaxRanges*8 + MaxBlocks*5

// MaxPackets is how many packets a block has at most: those of a Reed–Solomon
// code over bytes.
const MaxPackets = 255

// Errors of a packet.
var (
	ErrMalformed = errors.New("malformed")
	// ErrCheck: the packet was damaged, or is not of this connection.
	ErrCheck = errors.New("the check does not match")
)

// Key is what both ends of a connection know: the tokens of client and server.
// The check of every packet covers it, so that who has not seen the handshake
// cannot make one.
type Key [16]byte

// Range is a part of the stream that has arrived, To excluded.
type Range struct{ From, To uint32 }

// Block is what has arrived of a block: any of its packets, of the stream or of the code.
type Block struct {
	Start uint32
	Got   uint8
}

// Packet is any packet; what a kind does not have is zero.
type Packet struct {
	Kind   Kind
	Flags  uint8
	Client uint64 // Syn, SynAck: tokens
	Server uint64
	Window uint32 // Syn, SynAck: bytes from the stream's start that may be sent
	Most   uint16 // Syn, SynAck: longest segment that is taken

	Number uint32 // Data, FEC, Fin, Probe: counts what is sent
	Seq    uint32 // Data, Fin: place in the stream; FEC: the block's start
	Index  uint8  // Data, FEC: place in the block
	Size   uint16 // Data, FEC: length of the block's segments, but the last
	Count  uint8  // FEC: how many segments the block has
	Last   uint16 // FEC: length of its last segment
	Body   []byte // of the packet that was read

	Next     uint32 // Ack: everything before has arrived
	Limit    uint32 // Ack: place in the stream up to which may be sent
	Largest  uint32 // Ack: the highest number that arrived
	Received uint32 // Ack: how many different numbers arrived
	ranges   [MaxRanges]Range
	blocks   [MaxBlocks]Block
	nranges  uint8
	nblocks  uint8
}

// Ranges are those of an acknowledgement.
func (p *Packet) Ranges() []Range { return p.ranges[:p.nranges] }

// Blocks are those of an acknowledgement.
func (p *Packet) Blocks() []Block { return p.blocks[:p.nblocks] }

// AddRange adds a range to an acknowledgement, and reports whether there was room.
func (p *Packet) AddRange(r Range) bool {
	if int(p.nranges) == MaxRanges {
		return false
	}
	p.ranges[p.nranges] = r
	p.nranges++
	return true
}

// AddBlock adds a block to an acknowledgement, and reports whether there was room.
func (p *Packet) AddBlock(b Block) bool {
	if int(p.nblocks) == MaxBlocks {
		return false
	}
	p.blocks[p.nblocks] = b
	p.nblocks++
	return true
}

var table = crc32.MakeTable(crc32.Castagnoli)

// check covers key and packet, the check itself excluded.
func check(k *Key, b []byte) uint32 {
	c := crc32.Update(0, table, k[:])
	c = crc32.Update(c, table, b[:2])
	return crc32.Update(c, table, b[common:])
}

// KindOf is what a packet is, before anything else of it is known.
func KindOf(b []byte) (Kind, error) {
	if len(b) < common || b[0]>>4 != Version || b[1]&^knownFlags != 0 {
		return 0, ErrMalformed
	}
	k := Kind(b[0] & 15)
	if k < Syn || k > Reset {
		return 0, ErrMalformed
	}
	return k, nil
}

// Append writes a packet with its body; the key is zero for [Syn], and has the
// client's token alone for [SynAck].
func Append(b []byte, p *Packet, body []byte, k *Key) []byte {
	at := len(b)
	b = append(b, Version<<4|byte(p.Kind), p.Flags, 0, 0, 0, 0)
	u32 := binary.BigEndian.AppendUint32
	switch p.Kind {
	case Syn, SynAck:
		b = binary.BigEndian.AppendUint64(b, p.Client)
		if p.Kind == SynAck {
			b = binary.BigEndian.AppendUint64(b, p.Server)
		}
		b = binary.BigEndian.AppendUint16(u32(b, p.Window), p.Most)
	case Data:
		b = append(u32(u32(b, p.Number), p.Seq), p.Index, byte(p.Size>>8), byte(p.Size))
		b = append(b, body...)
	case FEC:
		b = append(u32(u32(b, p.Number), p.Seq), p.Index, byte(p.Size>>8), byte(p.Size), p.Count, byte(p.Last>>8), byte(p.Last))
		b = append(b, body...)
	case Ack:
		b = u32(u32(u32(u32(b, p.Next), p.Limit), p.Largest), p.Received)
		b = append(b, p.nranges<<4|p.nblocks)
		for _, r := range p.Ranges() {
			b = u32(u32(b, r.From), r.To)
		}
		for _, l := range p.Blocks() {
			b = append(u32(b, l.Start), l.Got)
		}
	case Fin:
		b = u32(u32(b, p.Number), p.Seq)
	case Probe:
		b = u32(b, p.Number)
	}
	Seal(b[at:], k)
	return b
}

// Seal puts the check into a packet's bytes, which it returns.
func Seal(b []byte, k *Key) []byte {
	if len(b) >= common {
		binary.BigEndian.PutUint32(b[2:], check(k, b))
	}
	return b
}

// Parse reads a packet of the key. Body is part of b.
func Parse(b []byte, k *Key, p *Packet) error {
	kind, err := KindOf(b)
	if err != nil {
		return err
	}
	if binary.BigEndian.Uint32(b[2:]) != check(k, b) {
		return ErrCheck
	}
	*p = Packet{Kind: kind, Flags: b[1]}
	u32 := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	u16 := func(at int) uint16 { return binary.BigEndian.Uint16(b[at:]) }
	fits := func(n int) bool { return len(b) == n }
	switch kind {
	case Syn:
		if !fits(synLength) {
			return ErrMalformed
		}
		p.Client, p.Window, p.Most = binary.BigEndian.Uint64(b[6:]), u32(14), u16(18)
	case SynAck:
		if !fits(grantLen) {
			return ErrMalformed
		}
		p.Client, p.Server = binary.BigEndian.Uint64(b[6:]), binary.BigEndian.Uint64(b[14:])
		p.Window, p.Most = u32(22), u16(26)
	case Data:
		if len(b) <= DataHeader {
			return ErrMalformed
		}
		p.Number, p.Seq, p.Index, p.Size, p.Body = u32(6), u32(10), b[14], u16(15), b[DataHeader:]
		if len(p.Body) > int(p.Size) || p.Index >= MaxPackets-1 {
			return ErrMalformed
		}
	case FEC:
		if len(b) <= FECHeader {
			return ErrMalformed
		}
		p.Number, p.Seq, p.Index, p.Size, p.Count, p.Last, p.Body = u32(6), u32(10), b[14], u16(15), b[17], u16(18), b[FECHeader:]
		if len(p.Body) != int(p.Size) || p.Count == 0 || p.Index < p.Count || p.Index >= MaxPackets || p.Last == 0 || p.Last > p.Size {
			return ErrMalformed
		}
	case Ack:
		return parseAck(b, p)
	case Fin:
		if !fits(finLength) {
			return ErrMalformed
		}
		p.Number, p.Seq = u32(6), u32(10)
	case Probe:
		if !fits(probeLen) {
			return ErrMalformed
		}
		p.Number = u32(6)
	case Reset:
		if !fits(common) {
			return ErrMalformed
		}
	}
	return nil
}

func parseAck(b []byte, p *Packet) error {
	if len(b) < ackLength {
		return ErrMalformed
	}
	u32 := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	p.Next, p.Limit, p.Largest, p.Received = u32(6), u32(10), u32(14), u32(18)
	nr, nb := int(b[22]>>4), int(b[22]&15)
	if nr > MaxRanges || nb > MaxBlocks || len(b) != ackLength+nr*8+nb*5 {
		return ErrMalformed
	}
	at := ackLength
	for range nr {
		p.AddRange(Range{u32(at), u32(at + 4)})
		at += 8
	}
	for range nb {
		p.AddBlock(Block{u32(at), b[at+4]})
		at += 5
	}
	return nil
}

// Tokens puts the tokens of both ends into a key; the server's is 0 while it is not known.
func Tokens(client, server uint64) (k Key) {
	binary.BigEndian.PutUint64(k[:8], client)
	binary.BigEndian.PutUint64(k[8:], server)
	return k
}
