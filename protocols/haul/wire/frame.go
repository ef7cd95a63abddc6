package wire

import (
	"encoding/binary"
	"unicode/utf8"
)

// FrameKind is the kind of a frame: its first byte.
type FrameKind uint8

// Frames of a data packet's body. Those that end the body say so.
const (
	FramePing       FrameKind = 0x01 // nothing; asks for an acknowledgement as every packet does that is not only an acknowledgement
	FrameAck        FrameKind = 0x02 // what has arrived
	FrameRequest    FrameKind = 0x03 // acknowledge what does not ask for it at the latest after a delay
	FrameClose      FrameKind = 0x04 // the connection ends
	FrameSuspend    FrameKind = 0x05 // the sender will be silent until it sends again
	FrameSymbol     FrameKind = 0x06 // a source symbol; ends the body
	FrameRepair     FrameKind = 0x07 // a combination of source symbols; ends the body
	FrameUnreliable FrameKind = 0x08 // items that are never repeated; ends the body
	FramePartial    FrameKind = 0x09 // a repair of a range without some of its symbols; ends the body

	FrameChallenge FrameKind = 0x0a // server: a token, to prove the address that it is sent to
	FrameResponse  FrameKind = 0x0b // client: the token of a challenge
)

// Limits of what frames may say.
const (
	// MaxRanges is the most ranges of an acknowledgement.
	MaxRanges = 128
	// MaxSkip is the longest bitmap of a repair, in bytes.
	MaxSkip = 32
	// MaxReason is the longest reason of a close, in bytes.
	MaxReason = 200
	// TokenSize is the length of a challenge's token, in bytes.
	TokenSize = 16
	maxNumber = 1 << 60
)

// Range is a hole in what has arrived, and what has arrived behind it.
type Range struct{ Missing, Arrived uint64 }

// Ack says what has arrived.
type Ack struct {
	Largest  uint64  // highest number of a packet that arrived
	Received uint64  // packets that arrived so far
	Bursts   uint64  // how often one or more numbers before an arriving packet had not arrived
	At       uint32  // when Largest arrived: µs of the receiver's clock, modulo 2^32
	Delay    uint64  // µs from then until this was sent
	CE       uint64  // packets that arrived with the mark CE (RFC 3168)
	Credit   uint64  // bytes of payload that may have been sent so far
	Rank     uint64  // equations held that have given no symbol yet
	Next     uint64  // all symbols below it have arrived
	Ranges   []Range // what has arrived beyond, ascending; Missing and Arrived at least 1
}

// Request says how long acknowledgements may wait.
type Request struct {
	Delay uint64 // µs: later packets are acknowledged at the latest after it
}

// Close ends the connection.
type Close struct {
	Abort  bool   // what was not delivered is discarded
	Answer bool   // answers the other end's close
	Reason string // for people
}

// Symbol is a source symbol: a number and its items.
type Symbol struct {
	ID   uint64
	Data []byte
}

// Repair is a combination of source symbols; its coefficients follow from the
// packet's number (package code).
type Repair struct {
	First uint64
	Count int // 1 to 256
	Skip  []byte
	Data  []byte
}

// Frame is one frame; of the fields that of its kind is set.
type Frame struct {
	Kind    FrameKind
	Ack     Ack
	Request Request
	Close   Close
	Symbol  Symbol // also of FrameUnreliable, without a number
	Repair  Repair
	Token   []byte // of a challenge or a response
}

// AppendAck appends an acknowledgement whose length is at most room beyond b;
// ranges that do not fit are left out from the end.
func AppendAck(b []byte, a *Ack, room int) []byte {
	limit := len(b) + room
	b = append(b, byte(FrameAck))
	b = binary.AppendUvarint(b, a.Largest)
	b = binary.AppendUvarint(b, a.Largest+1-a.Received) // packets that have not arrived
	b = binary.AppendUvarint(b, a.Bursts)
	b = binary.BigEndian.AppendUint32(b, a.At)
	b = binary.AppendUvarint(b, a.Delay)
	b = binary.AppendUvarint(b, a.CE)
	b = binary.AppendUvarint(b, a.Credit)
	b = binary.AppendUvarint(b, a.Rank)
	b = binary.AppendUvarint(b, a.Next)
	count := len(b)
	b = append(b, 0)
	for i, r := range a.Ranges {
		n := len(b)
		b = binary.AppendUvarint(b, r.Missing)
		b = binary.AppendUvarint(b, r.Arrived)
		if i == MaxRanges-1 || len(b) > limit {
			return b[:n]
		}
		b[count]++
	}
	return b
}

func parseAck(b []byte, a *Ack) ([]byte, error) {
	ranges := a.Ranges[:0]
	*a = Ack{}
	var missing, n uint64
	var err error
	for _, f := range []struct {
		to    *uint64
		limit uint64
	}{{&a.Largest, maxNumber}, {&missing, maxNumber}, {&a.Bursts, maxNumber}} {
		if *f.to, b, err = takeUpTo(b, f.limit); err != nil {
			return nil, err
		}
	}
	// Bursts may be more than missing: what is late fills a gap that has been counted.
	if missing > a.Largest || a.Bursts > a.Largest || len(b) < 4 {
		return nil, ErrMalformed
	}
	a.Received = a.Largest + 1 - missing
	a.At, b = binary.BigEndian.Uint32(b), b[4:]
	for _, to := range []*uint64{&a.Delay, &a.CE, &a.Credit, &a.Rank, &a.Next} {
		if *to, b, err = takeUpTo(b, maxNumber); err != nil {
			return nil, err
		}
	}
	if n, b, err = takeUpTo(b, MaxRanges); err != nil {
		return nil, err
	}
	total := a.Next
	for range n {
		var r Range
		if r.Missing, b, err = takeUpTo(b, maxNumber); err == nil {
			r.Arrived, b, err = takeUpTo(b, maxNumber)
		}
		if err != nil || r.Missing == 0 || r.Arrived == 0 {
			return nil, ErrMalformed
		}
		if total += r.Missing + r.Arrived; total > maxNumber {
			return nil, ErrMalformed
		}
		ranges = append(ranges, r)
	}
	a.Ranges = ranges
	return b, nil
}

// AppendPing appends a ping.
func AppendPing(b []byte) []byte { return append(b, byte(FramePing)) }

// AppendSuspend appends the notice that the sender falls silent.
func AppendSuspend(b []byte) []byte { return append(b, byte(FrameSuspend)) }

// AppendToken appends a challenge or a response.
func AppendToken(b []byte, k FrameKind, token []byte) []byte {
	return append(append(b, byte(k)), token[:TokenSize]...)
}

// AppendRequest appends a request.
func AppendRequest(b []byte, r Request) []byte {
	return binary.AppendUvarint(append(b, byte(FrameRequest)), r.Delay)
}

// AppendClose appends a close.
func AppendClose(b []byte, c Close) []byte {
	var flags byte
	if c.Abort {
		flags |= 1
	}
	if c.Answer {
		flags |= 2
	}
	reason := c.Reason[:min(len(c.Reason), MaxReason)]
	for len(reason) < len(c.Reason) && len(reason) > 0 && !utf8.RuneStart(c.Reason[len(reason)]) {
		reason = reason[:len(reason)-1] // no half of a character
	}
	b = append(b, byte(FrameClose), flags, byte(len(reason)))
	return append(b, reason...)
}

// AppendSymbol appends the head of a source symbol, whose data follows and ends the body.
func AppendSymbol(b []byte, id uint64) []byte {
	return binary.AppendUvarint(append(b, byte(FrameSymbol)), id)
}

// AppendUnreliable appends the head of items that are never repeated, which follow and end the body.
func AppendUnreliable(b []byte) []byte { return append(b, byte(FrameUnreliable)) }

// AppendRepair appends the head of a repair, whose data follows and ends the
// body. skip, where it is not empty, is the bitmap of symbols that are not in it.
func AppendRepair(b []byte, first uint64, count int, skip []byte) []byte {
	k := FrameRepair
	if len(skip) > 0 {
		k = FramePartial
	}
	b = binary.AppendUvarint(append(b, byte(k)), first)
	b = append(b, byte(count-1))
	if len(skip) > 0 {
		b = append(append(b, byte(len(skip))), skip...)
	}
	return b
}

// Next reads the frame at the beginning of a body into f and returns what
// follows it. What f holds refers to the body; the ranges of an acknowledgement
// reuse those of f.
func Next(b []byte, f *Frame) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, ErrMalformed
	}
	f.Kind, b = FrameKind(b[0]), b[1:]
	switch f.Kind {
	case FramePing, FrameSuspend:
		return b, nil
	case FrameAck:
		return parseAck(b, &f.Ack)
	case FrameRequest:
		f.Request.Delay, b, err = takeUpTo(b, maxNumber)
		return b, err
	case FrameClose:
		if len(b) < 2 || b[0] > 3 || int(b[1]) > MaxReason || len(b) < 2+int(b[1]) {
			return nil, ErrMalformed
		}
		n := 2 + int(b[1])
		f.Close = Close{Abort: b[0]&1 != 0, Answer: b[0]&2 != 0, Reason: string(b[2:n])}
		return b[n:], nil
	case FrameChallenge, FrameResponse:
		if len(b) < TokenSize {
			return nil, ErrMalformed
		}
		f.Token = b[:TokenSize]
		return b[TokenSize:], nil
	case FrameSymbol:
		if f.Symbol.ID, b, err = takeUpTo(b, maxNumber); err != nil {
			return nil, err
		}
		f.Symbol.Data = b
		return nil, nil
	case FrameUnreliable:
		f.Symbol = Symbol{Data: b}
		return nil, nil
	case FrameRepair, FramePartial:
		partial := f.Kind == FramePartial
		f.Kind = FrameRepair
		return nil, parseRepair(b, &f.Repair, partial)
	}
	return nil, ErrMalformed
}

func parseRepair(b []byte, r *Repair, partial bool) (err error) {
	if r.First, b, err = takeUpTo(b, maxNumber); err != nil {
		return err
	}
	if len(b) < 1 {
		return ErrMalformed
	}
	r.Count, r.Skip, b = int(b[0])+1, nil, b[1:]
	if partial {
		if len(b) < 1 || b[0] == 0 || b[0] > MaxSkip || len(b) < 1+int(b[0]) {
			return ErrMalformed
		}
		n := 1 + int(b[0])
		r.Skip, b = b[1:n], b[n:]
	}
	r.Data = b
	return nil
}
