package wire

import "encoding/binary"

// Kind is the kind of a packet: the upper half of its first byte.
type Kind uint8

const (
	KindHello   Kind = 1 // client to server: begins a connection
	KindAnswer  Kind = 2 // server to client: accepts it
	KindRetry   Kind = 3 // server to client: again, with this cookie
	KindRefusal Kind = 4 // server to client: no, because
	KindData    Kind = 5 // either way: frames, sealed
	KindAsking  Kind = 6 // the same, and asks to be acknowledged at once
)

// Lengths, in bytes.
const (
	// MinHello is the least length of a hello: an answer with what may follow it
	// before the address is known to be the client's is at most three times as
	// long (RFC 9000, section 8.1).
	MinHello = 120
	// DataHeader is the length of a data packet's header.
	DataHeader = 1 + 4 + numberBytes
	// MaxCookie is the longest cookie of a retry.
	MaxCookie = 32
	// MaxRefusal is the longest sentence of a refusal.
	MaxRefusal  = 200
	numberBytes = 3
)

// KindOf returns a packet's kind and version.
func KindOf(p []byte) (k Kind, version int, err error) {
	if len(p) == 0 {
		return 0, 0, ErrMalformed
	}
	return Kind(p[0] >> 4), int(p[0] & 15), nil
}

func first(k Kind) byte { return byte(k)<<4 | Version }

// Hello begins a connection.
type Hello struct {
	Client  uint32 // identity that packets to the client bear
	Attempt uint8  // counts the hellos of one connection, from 0
	Cookie  []byte // of a retry, at most MaxCookie
	Message []byte // the first message of the handshake (package secure)
}

// AppendHello appends h, padded to [MinHello].
func AppendHello(b []byte, h Hello) []byte {
	start := len(b)
	b = append(b, first(KindHello))
	b = binary.BigEndian.AppendUint32(b, h.Client)
	b = append(b, h.Attempt, byte(len(h.Cookie)))
	b = append(b, h.Cookie...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(h.Message)))
	b = append(b, h.Message...)
	for len(b)-start < MinHello {
		b = append(b, 0)
	}
	return b
}

// ParseHello reads what AppendHello wrote. The result refers to p.
func ParseHello(p []byte) (h Hello, err error) {
	if len(p) < MinHello || p[0] != first(KindHello) {
		return h, ErrMalformed
	}
	h.Client, h.Attempt = binary.BigEndian.Uint32(p[1:]), p[5]
	n := int(p[6])
	p = p[7:]
	if n > MaxCookie || n+2 > len(p) {
		return h, ErrMalformed
	}
	h.Cookie, p = p[:n], p[n:]
	n = int(binary.BigEndian.Uint16(p))
	if p = p[2:]; n > len(p) {
		return h, ErrMalformed
	}
	h.Message = p[:n]
	return h, nil
}

// Answer accepts a connection.
type Answer struct {
	Client  uint32
	Attempt uint8  // of the hello that it answers
	Message []byte // the second message of the handshake
}

// AppendAnswer appends a.
func AppendAnswer(b []byte, a Answer) []byte {
	b = append(b, first(KindAnswer))
	b = binary.BigEndian.AppendUint32(b, a.Client)
	b = append(b, a.Attempt)
	return append(b, a.Message...)
}

// ParseAnswer reads what AppendAnswer wrote. The result refers to p.
func ParseAnswer(p []byte) (a Answer, err error) {
	if len(p) < 6 || p[0] != first(KindAnswer) {
		return a, ErrMalformed
	}
	return Answer{Client: binary.BigEndian.Uint32(p[1:]), Attempt: p[5], Message: p[6:]}, nil
}

// AppendRetry appends a retry with a cookie.
func AppendRetry(b []byte, client uint32, cookie []byte) []byte {
	b = append(b, first(KindRetry))
	b = binary.BigEndian.AppendUint32(b, client)
	return append(b, cookie...)
}

// ParseRetry reads what AppendRetry wrote. The cookie refers to p.
func ParseRetry(p []byte) (client uint32, cookie []byte, err error) {
	if len(p) < 6 || len(p) > 5+MaxCookie || p[0] != first(KindRetry) {
		return 0, nil, ErrMalformed
	}
	return binary.BigEndian.Uint32(p[1:]), p[5:], nil
}

// AppendRefusal appends a refusal with a sentence for people. Its version is that of the
// sender; the format of a refusal is the same in all versions.
func AppendRefusal(b []byte, client uint32, sentence string) []byte {
	b = append(b, first(KindRefusal))
	b = binary.BigEndian.AppendUint32(b, client)
	return append(b, sentence[:min(len(sentence), MaxRefusal)]...)
}

// ParseRefusal reads what AppendRefusal of any version wrote.
func ParseRefusal(p []byte) (client uint32, sentence string, err error) {
	if len(p) < 5 || len(p) > 5+MaxRefusal || Kind(p[0]>>4) != KindRefusal {
		return 0, "", ErrMalformed
	}
	return binary.BigEndian.Uint32(p[1:]), string(p[5:]), nil
}

// AppendData appends the header of a data packet: the connection's identity at
// the receiver, and the lowest three bytes of the packet's number. asks: it is
// to be acknowledged at once.
func AppendData(b []byte, receiver uint32, number uint64, asks bool) []byte {
	k := KindData
	if asks {
		k = KindAsking
	}
	b = append(b, first(k))
	b = binary.BigEndian.AppendUint32(b, receiver)
	return append(b, byte(number>>16), byte(number>>8), byte(number))
}

// ParseData reads the header of a data packet: the receiver's identity and the
// truncated number, which [Expand] completes. What follows it is sealed.
func ParseData(p []byte) (receiver uint32, truncated uint32, err error) {
	if len(p) < DataHeader || p[0] != first(KindData) && p[0] != first(KindAsking) {
		return 0, 0, ErrMalformed
	}
	return binary.BigEndian.Uint32(p[1:]), uint32(p[5])<<16 | uint32(p[6])<<8 | uint32(p[7]), nil
}

// Expand completes a truncated number to the one that is nearest to expected
// (cf. RFC 9000, appendix A.3).
func Expand(truncated uint32, expected uint64) uint64 {
	const window = uint64(1) << (8 * numberBytes)
	n := expected&^(window-1) | uint64(truncated)
	switch {
	case n+window/2 <= expected:
		return n + window
	case n > expected+window/2 && n >= window:
		return n - window
	}
	return n
}
