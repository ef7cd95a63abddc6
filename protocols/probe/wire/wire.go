// Package wire is what a probe's client and server exchange, as bytes of datagrams.
// Pure: it takes and returns bytes.
//
//	hello   client → server    'H', identity (16), seed (8)
//	fetch   client → server    'A', identity (16), seed (8), duration in nanoseconds (8; 0: until stop)
//	here    server → client    'R', identity (16)
//	packet  sender → receiver  'D', step of a search (3; 0: of none), number (4), time (8), tag (8), payload
//	short   sender → receiver  'M', number (4), time (8), tag (7), payload: a packet of a message, which can have 20 bytes
//	ask     sender → receiver  'Q', identity (16), step (3), number (2), padding, tag (8)
//	report  receiver → sender  'P', identity (16), [Report] (varints), tag (8)
//	stop    client → server    'S', identity (16), tag (8)
//	end     sender → receiver  'E', identity (16), packets sent (8), bytes sent (8), clock step (8), packets not sent (8), [Search] (varints; of a search), tag (8)
//	metrics receiver → sender  'F', identity (16), metrics (8 each), capacity (varints; of a search), messages (varints; of messages), percentiles of the delay (of each what it is above the one before, as a varint), tag (8)
//	bye     either             'B', identity (16), tag (8)
//	unknown server → client    'N', identity (16)
//
// After hello the client sends the packets and the server receives them; after fetch
// the server sends them, and stop ends them.
//
// Numbers are in network byte order. A tag is the first eight bytes of
// HMAC-SHA256 over all that stands before it, and for a packet over its length too,
// with the identity and the seed as the key; of a short packet it is the first seven. The payload of packet n is that of the
// seed from n·2^16 on ([Content]). Packets from elsewhere thus do not count,
// and neither do those of another probe.
package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"time"

	"linktrial/protocols/contract"
)

// Kinds of datagrams, their first byte.
const (
	Hello    = 'H'
	Fetch    = 'A'
	Here     = 'R'
	Data     = 'D'
	OfShort  = 'M'
	Ask      = 'Q'
	Reported = 'P'
	Stop     = 'S'
	End      = 'E'
	Metrics  = 'F'
	Bye      = 'B'
	Unknown  = 'N'
)

const (
	tagSize = 8
	idSize  = 16
	helloSize,
	fetchSize,
	hereSize,
	endSize,
	byeSize = 1 + idSize + 8,
		1 + idSize + 8 + 8,
		1 + idSize,
		1 + idSize + 4*8 + tagSize,
		1 + idSize + tagSize
	metricCount = 21
	metricsSize = 1 + idSize + 8*metricCount + tagSize // without percentiles

	// HeaderSize is what a packet has before its payload.
	HeaderSize = 24
	tagAt      = HeaderSize - tagSize

	// ShortSize is what a packet of a message has before its payload.
	ShortSize  = 20
	shortTagAt = 1 + 4 + 8

	payloadGap = 16 // bits: how far apart the payloads of two packets are
)

// errForeign reports a datagram that is not of the probe.
var errForeign = errors.New("not a datagram of this probe")

// Key is what the ends of one probe know of it.
type Key struct {
	ID   contract.TransferID
	Seed uint64
	mac  hash.Hash
	sum  []byte
}

// NewKey makes the key of a probe. It is not for use by several goroutines at once.
func NewKey(id contract.TransferID, seed uint64) *Key {
	secret := binary.BigEndian.AppendUint64(append([]byte("linktrial probe "), id[:]...), seed)
	return &Key{ID: id, Seed: seed, mac: hmac.New(sha256.New, secret)}
}

func (k *Key) tag(b []byte, length int) []byte {
	k.mac.Reset()
	k.mac.Write(b)
	k.mac.Write(binary.BigEndian.AppendUint64(nil, uint64(length)))
	k.sum = k.mac.Sum(k.sum[:0])
	return k.sum[:tagSize]
}

// head is a datagram's kind and the probe's identity.
func (k *Key) head(kind byte) []byte { return append([]byte{kind}, k.ID[:]...) }

// closed appends the tag of a datagram.
func (k *Key) closed(b []byte) []byte { return append(b, k.tag(b, len(b)+tagSize)...) }

// opened reports whether a datagram of a kind is whole and this probe's.
func (k *Key) opened(b []byte, kind byte, size int) bool {
	return len(b) == size && b[0] == kind && contract.TransferID(b[1:1+idSize]) == k.ID &&
		hmac.Equal(b[size-tagSize:], k.tag(b[:size-tagSize], size))
}

// Hello asks a server to take the probe.
func (k *Key) Hello() []byte { return binary.BigEndian.AppendUint64(k.head(Hello), k.Seed) }

// ParseHello reads a [Key.Hello].
func ParseHello(b []byte) (id contract.TransferID, seed uint64, ok bool) {
	if len(b) != helloSize || b[0] != Hello {
		return id, 0, false
	}
	return contract.TransferID(b[1 : 1+idSize]), binary.BigEndian.Uint64(b[1+idSize:]), true
}

// Fetch asks a server to send the probe's packets, for so long; 0: until [Key.Stop].
func (k *Key) Fetch(lasts time.Duration) []byte {
	b := binary.BigEndian.AppendUint64(k.head(Fetch), k.Seed)
	return binary.BigEndian.AppendUint64(b, uint64(lasts))
}

// ParseFetch reads a [Key.Fetch].
func ParseFetch(b []byte) (id contract.TransferID, seed uint64, lasts time.Duration, ok bool) {
	if len(b) != fetchSize || b[0] != Fetch {
		return id, 0, 0, false
	}
	lasts = time.Duration(binary.BigEndian.Uint64(b[1+idSize+8:]))
	return contract.TransferID(b[1 : 1+idSize]), binary.BigEndian.Uint64(b[1+idSize:]), lasts, lasts >= 0
}

// Here is the server's answer to hello and fetch.
func (k *Key) Here() []byte { return k.head(Here) }

// IsHere reports whether a datagram is [Key.Here].
func (k *Key) IsHere(b []byte) bool {
	return len(b) == hereSize && b[0] == Here && contract.TransferID(b[1:]) == k.ID
}

// Unknowing is the answer to [Key.End] and [Key.Stop] of a probe that the server does
// not know: it was started again since.
func Unknowing(b []byte) []byte {
	if len(b) >= endSize && b[0] == End || len(b) == byeSize && b[0] == Stop {
		return append([]byte{Unknown}, b[1:1+idSize]...)
	}
	return nil
}

// IsUnknown reports whether a datagram is [Unknowing] of this probe.
func (k *Key) IsUnknown(b []byte) bool {
	return len(b) == hereSize && b[0] == Unknown && contract.TransferID(b[1:]) == k.ID
}

// Packet fills b, which is at least [HeaderSize] long, with packet n as sent at a
// time in nanoseconds since 1970, in a step of a search; 0: in none.
func (k *Key) Packet(b []byte, step, n uint32, at int64) {
	binary.BigEndian.PutUint32(b, Data<<24|step)
	binary.BigEndian.PutUint32(b[4:], n)
	binary.BigEndian.PutUint64(b[8:], uint64(at))
	copy(b[tagAt:], k.tag(b[:tagAt], len(b)))
	Content(b[HeaderSize:], k.Seed, uint64(n)<<payloadGap)
}

// ParsePacket reads and verifies a packet.
func (k *Key) ParsePacket(b []byte) (step, n uint32, at int64, err error) {
	if len(b) < HeaderSize || b[0] != Data || !hmac.Equal(b[tagAt:HeaderSize], k.tag(b[:tagAt], len(b))) {
		return 0, 0, 0, errForeign
	}
	step, n, at = binary.BigEndian.Uint32(b)&MaxStep, binary.BigEndian.Uint32(b[4:]), int64(binary.BigEndian.Uint64(b[8:]))
	if verify(b[HeaderSize:], k.Seed, uint64(n)<<payloadGap) >= 0 {
		return 0, 0, 0, errForeign
	}
	return step, n, at, nil
}

// Short fills b, which is at least [ShortSize] long, with packet n of a probe of messages, as
// sent at a time in nanoseconds since 1970.
func (k *Key) Short(b []byte, n uint32, at int64) {
	b[0] = OfShort
	binary.BigEndian.PutUint32(b[1:], n)
	binary.BigEndian.PutUint64(b[5:], uint64(at))
	copy(b[shortTagAt:ShortSize], k.tag(b[:shortTagAt], len(b)))
	Content(b[ShortSize:], k.Seed, uint64(n)<<payloadGap)
}

// ParseShort reads and verifies a [Key.Short].
func (k *Key) ParseShort(b []byte) (n uint32, at int64, err error) {
	if len(b) < ShortSize || b[0] != OfShort || !hmac.Equal(b[shortTagAt:ShortSize], k.tag(b[:shortTagAt], len(b))[:ShortSize-shortTagAt]) {
		return 0, 0, errForeign
	}
	n, at = binary.BigEndian.Uint32(b[1:]), int64(binary.BigEndian.Uint64(b[5:]))
	if verify(b[ShortSize:], k.Seed, uint64(n)<<payloadGap) >= 0 {
		return 0, 0, errForeign
	}
	return n, at, nil
}

// Sent is what the sending end has sent when it ends.
type Sent struct {
	Packets, Bytes int64
	ClockStep      int64 // in nanoseconds
	Unsent         int64 // packets that the congestion control held back
	Search         *Search
}

// End says that no packet follows, and asks for the metrics.
func (k *Key) End(s Sent) []byte {
	b := k.head(End)
	for _, v := range []int64{s.Packets, s.Bytes, s.ClockStep, s.Unsent} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	if s.Search != nil {
		b = s.Search.appended(b)
	}
	return k.closed(b)
}

// ParseEnd reads [Key.End].
func (k *Key) ParseEnd(b []byte) (s Sent, ok bool) {
	if len(b) < endSize || !k.opened(b, End, len(b)) {
		return s, false
	}
	for i, v := range []*int64{&s.Packets, &s.Bytes, &s.ClockStep, &s.Unsent} {
		*v = int64(binary.BigEndian.Uint64(b[1+idSize+8*i:]))
	}
	if ok = true; len(b) > endSize {
		s.Search, ok = parseSearch(b[endSize-tagSize : len(b)-tagSize])
	}
	return s, ok
}

// Stop asks the server for no more packets.
func (k *Key) Stop() []byte { return k.closed(k.head(Stop)) }

// IsStop reports whether a datagram is [Key.Stop].
func (k *Key) IsStop(b []byte) bool { return k.opened(b, Stop, byeSize) }

// Bye says that an end wants nothing more of the probe: the sending one has the
// metrics, or the client gives it up.
func (k *Key) Bye() []byte { return k.closed(k.head(Bye)) }

// IsBye reports whether a datagram is [Key.Bye].
func (k *Key) IsBye(b []byte) bool { return k.opened(b, Bye, byeSize) }

const (
	hasDelays    = 1
	processTimes = 2
	hasCapacity  = 4
	hasMessages  = 8
)

// fields are the metrics in the order in which they are sent. Bits of flags, the
// first, are [hasDelays], [processTimes], [hasCapacity] and [hasMessages].
func fields(p *contract.ProbeMetrics, d *contract.Delays, flags *int64) [metricCount]*int64 {
	return [...]*int64{
		flags, &p.Sent, &p.Unsent, &p.Received, &p.Lost, &p.Duplicated, &p.Reordered, &p.Strays, &p.SentBytes, &p.ReceivedBytes,
		&p.LossBursts, &p.LongestLossBurst, &p.JitterMeanNS, &p.JitterMaxNS, &p.ClockStepNS,
		&d.MinNS, &d.MeanNS, &d.P50NS, &d.P95NS, &d.P99NS, &d.MaxNS,
	}
}

// Metrics is the receiving end's answer to [Key.End].
func (k *Key) Metrics(p *contract.ProbeMetrics) []byte {
	var d contract.Delays
	flags := int64(0)
	if p.Delay != nil {
		d, flags = *p.Delay, hasDelays
	}
	if p.ProcessTimes {
		flags |= processTimes
	}
	if p.Capacity != nil {
		flags |= hasCapacity
	}
	if p.Messages != nil {
		flags |= hasMessages
	}
	b := k.head(Metrics)
	for _, v := range fields(p, &d, &flags) {
		b = binary.BigEndian.AppendUint64(b, uint64(*v))
	}
	if p.Capacity != nil {
		b = appendCapacity(b, p.Capacity)
	}
	if p.Messages != nil {
		b = appendMessages(b, p.Messages)
	}
	before := d.MinNS
	for _, v := range d.PercentilesNS {
		b = binary.AppendUvarint(b, uint64(v-before))
		before = v
	}
	return k.closed(b)
}

// ParseMetrics reads [Key.Metrics].
func (k *Key) ParseMetrics(b []byte) (p *contract.ProbeMetrics, ok bool) {
	if len(b) < metricsSize || !k.opened(b, Metrics, len(b)) {
		return nil, false
	}
	p = &contract.ProbeMetrics{}
	var d contract.Delays
	var flags int64
	for i, v := range fields(p, &d, &flags) {
		*v = int64(binary.BigEndian.Uint64(b[1+idSize+8*i:]))
	}
	if flags&hasDelays != 0 {
		p.Delay = &d
	}
	rest := b[1+idSize+8*metricCount : len(b)-tagSize]
	if flags&hasCapacity != 0 {
		if p.Capacity, rest, ok = parseCapacity(rest); !ok {
			return nil, false
		}
	}
	if flags&hasMessages != 0 {
		if p.Messages, rest, ok = parseMessages(rest); !ok {
			return nil, false
		}
	}
	for before := d.MinNS; len(rest) > 0; {
		v, n := binary.Uvarint(rest)
		if n <= 0 || len(d.PercentilesNS) == contract.DelayPercentiles {
			return nil, false
		}
		before += int64(v)
		d.PercentilesNS, rest = append(d.PercentilesNS, before), rest[n:]
	}
	p.ProcessTimes = flags&processTimes != 0
	return p, true
}
