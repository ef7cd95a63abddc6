package core

import (
	"math"
	"time"

	"linktrial/protocols/lttcp/wire"
)

// Parameters of the sender.
const (
	// mostSegments bounds a block: its code has 255 packets in all, and decoding
	// takes time with the cube of the segments.
	mostSegments = 100
	// duplicates is how many later packets must have arrived before one counts as
	// lost: TCP's three duplicate acknowledgements (RFC 5681).
	duplicates = 3
	// mostErasures bounds the estimate that FEC is computed with: there is no
	// window with less than a tenth of data.
	mostErasures = 0.9
)

// segment is a part of the stream; it is never cut anew.
type segment struct {
	data    []byte
	number  int64 // of the packet that carried it last; 0: none yet
	arrived bool
	again   bool // sent again since the last timeout
	pending bool // to be sent again
}

// phase says how a block's losses are repaired.
type phase uint8

const (
	phaseAhead   phase = iota // phase 1: by the FEC that is sent with the block
	phaseRequest              // phase 2: by what the receiver's feedback asks for
	phaseAgain                // for what these were not enough: segments are sent again
	phaseTimeout              // by what follows a timeout
)

// block is a window's part of the stream, with the packets of its code. It is
// open while segments are added, and closed from then on.
type block struct {
	start     int64
	size      int // of every segment but the last
	aim       int // segments to be added until it is closed
	ahead     float64
	segments  []segment
	bytes     int
	arrived   int // segments known to have arrived
	got       int // packets of any kind that the receiver has
	closed    bool
	complete  bool // the receiver has every segment, or can make it
	proactive int  // packets of the code to be sent ahead
	code      [][]byte
	sent      int   // packets of the code that were sent
	reactive  int   // packets of the code to be sent on request
	last      int64 // number of the last packet of the phase under way
	phase     phase
	guarded   bool // proactive FEC was planned: losses wait for the end of phase 1
	repairs   []int64
}

// end is where the block's part of the stream ends.
func (b *block) end() int64 { return b.start + int64(b.bytes) }

// sentAhead reports whether all packets of phase 1 have been sent.
func (b *block) sentAhead() bool { return b.closed && b.sent >= b.proactive }

// missing is how many packets the receiver lacks, as far as it is known.
func (b *block) missing() int {
	if b.complete {
		return 0
	}
	return max(len(b.segments)-max(b.got, b.arrived), 0)
}

// transmission is a packet under way.
type transmission struct {
	at    time.Duration
	bytes int
}

// sender is the sending side of a connection.
type sender struct {
	config *Config
	codecs codecs
	clock  clock
	window window

	unsent  []byte // the application's bytes that are in no block yet
	more    bool   // the application is about to write more
	blocks  []*block
	cut     int64 // end of the stream's part that is in blocks
	una     int64 // everything before has arrived
	limit   int64 // the receiver takes no more than that
	most    int   // longest segment that both ends take
	mss     int   // what the window counts in
	ended   bool  // the application has finished
	fin     int64 // number of the packet that said so; 0: none yet
	finDue  bool
	finDone bool

	number   int64          // of the next packet; the first is 1
	log      []transmission // of the packets from number logged on
	logged   int64
	pipe     int   // bytes under way
	pipeFrom int64 // packets before it are not in pipe
	largest  int64 // highest number that arrived
	received int64 // how many numbers arrived

	erasures  float64 // A of lttcp-2006
	windowEnd int64   // number that ends the window that is measured
	begunAt   int64   // largest and received when it began
	begunWith int64

	timeoutAt time.Duration // 0: the timer is off
	probeAt   time.Duration
	probing   uint
	probe     bool
	reduce    bool // to be told to the receiver

	count struct {
		retransmits, timeouts, losses, proactive, reactive, reductions int64
		again                                                          int64 // bytes of the segments that retransmits counts
	}
}

func newSender(c *Config) *sender {
	return &sender{config: c, window: first(c.MSS), most: c.Segment, mss: c.MSS, number: 1, logged: 1, pipeFrom: 1, windowEnd: 1}
}

// write takes bytes of the application up to a length of the queue.
func (s *sender) write(b []byte, queue int) int {
	n := min(max(queue-len(s.unsent), 0), len(b))
	s.unsent = append(s.unsent, b[:n]...)
	return n
}

// outstanding reports whether an acknowledgement is owed.
func (s *sender) outstanding() bool {
	return s.una < s.cut || s.fin != 0 && !s.finDone
}

// segmentSize is the length of segments for a window (adaptive MSS).
func (s *sender) segmentSize(window int) int {
	if s.config.FixedSegment {
		return s.mss
	}
	return min(max(window/s.config.Granularity, min(s.config.Least, s.most)), s.most)
}

// open begins a block of the present window: at least G packets, of which the
// estimated share of erasures is FEC.
func (s *sender) open() *block {
	b := &block{start: s.cut, size: s.segmentSize(s.window.cwnd)}
	packets := max(s.window.cwnd/b.size, 1)
	if !s.config.NoProactive {
		b.ahead = min(s.erasures, mostErasures)
	}
	b.aim = min(max(packets-int(math.Round(b.ahead*float64(packets))), 1), mostSegments)
	s.blocks = append(s.blocks, b)
	return b
}

// current is the block that segments are added to, nil for none.
func (s *sender) current() *block {
	if n := len(s.blocks); n > 0 && !s.blocks[n-1].closed {
		return s.blocks[n-1]
	}
	return nil
}

// close ends a block: how much FEC it gets follows from the segments that it has.
func (s *sender) close(b *block) {
	b.closed = true
	n := len(b.segments)
	b.proactive = min(int(math.Round(b.ahead*float64(n)/(1-b.ahead))), wire.MaxPackets-n)
	b.guarded = b.proactive > 0
}

// cutSegment takes the next segment from what the application has written, nil
// where there is none now. Blocks end with a shorter segment, when the
// application has nothing more for now, and when they have as many as the window took.
func (s *sender) cutSegment() (*block, int) {
	b := s.current()
	if len(s.unsent) == 0 {
		if b != nil && !s.more {
			s.close(b)
		}
		return nil, 0
	}
	if b == nil {
		if s.more && len(s.unsent) < s.segmentSize(s.window.cwnd) {
			return nil, 0
		}
		b = s.open()
	}
	n := min(b.size, len(s.unsent))
	if n < b.size && s.more || s.cut+int64(n) > s.limit || !s.room(n) {
		return nil, 0
	}
	data := append([]byte(nil), s.unsent[:n]...)
	s.unsent = s.unsent[n:]
	if len(s.unsent) == 0 {
		s.unsent = nil
	}
	b.segments = append(b.segments, segment{data: data})
	b.bytes += n
	s.cut += int64(n)
	if n < b.size || len(b.segments) == b.aim {
		s.close(b)
	}
	return b, len(b.segments) - 1
}

// next is the packet to be sent now, appended to buf; none where the window, the
// receiver or the application have none (transmission scheduler).
func (s *sender) next(now time.Duration, buf []byte, k *wire.Key) []byte {
	if s.probe {
		s.probe = false
		return s.control(now, wire.Probe, buf, k)
	}
	s.window.limited = false
	if out := s.repair(now, buf, k); out != nil || s.window.limited {
		return out
	}
	if n := len(s.blocks); n > 0 {
		b := s.blocks[n-1]
		if b.closed && !b.complete && b.sent < b.proactive {
			return s.fec(now, b, false, buf, k)
		}
	}
	if b, i := s.cutSegment(); b != nil {
		return s.data(now, b, i, buf, k)
	}
	if n := len(s.blocks); n > 0 { // closed just now
		if b := s.blocks[n-1]; b.closed && !b.complete && b.sent < b.proactive {
			return s.fec(now, b, false, buf, k)
		}
	}
	if s.ended && len(s.unsent) == 0 && (s.fin == 0 || s.finDue) && !s.finDone {
		s.finDue = false
		out := s.control(now, wire.Fin, buf, k)
		s.fin = s.number - 1
		s.arm(now)
		return out
	}
	return nil
}

// repair is the next packet that repairs a block: first retransmissions, then
// reactive FEC that protects them. After a timeout FEC comes first, as the
// timeout has left no retransmission pending where it can.
func (s *sender) repair(now time.Duration, buf []byte, k *wire.Key) []byte {
	for _, b := range s.blocks {
		if b.complete {
			continue
		}
		for i := range b.segments {
			if g := &b.segments[i]; g.pending && !g.arrived {
				return s.data(now, b, i, buf, k)
			}
		}
		if b.reactive > 0 {
			return s.fec(now, b, true, buf, k)
		}
	}
	return nil
}

// room reports whether the window takes a packet with so many bytes.
func (s *sender) room(bytes int) bool {
	if s.pipe > 0 && s.pipe+bytes > s.window.cwnd {
		s.window.limited = true
		return false
	}
	return true
}

// data sends a segment, for the first time or again.
func (s *sender) data(now time.Duration, b *block, i int, buf []byte, k *wire.Key) []byte {
	g := &b.segments[i]
	if g.number != 0 && !s.room(len(g.data)) {
		return nil
	}
	p := wire.Packet{Kind: wire.Data, Number: uint32(s.number), Seq: uint32(b.start + int64(i*b.size)), Index: uint8(i), Size: uint16(b.size), Flags: s.flags()}
	if g.number == 0 {
		b.last = s.number
	} else {
		s.count.retransmits++
		s.count.again += int64(len(g.data))
		g.again, g.pending = true, false
		b.repairs = append(b.repairs, s.number)
	}
	g.number = s.number
	s.sent(now, len(g.data))
	s.arm(now)
	return wire.Append(buf, &p, g.data, k)
}

// fec sends the next packet of a block's code.
func (s *sender) fec(now time.Duration, b *block, reactive bool, buf []byte, k *wire.Key) []byte {
	if !s.room(b.size) {
		return nil
	}
	n := len(b.segments)
	if b.sent >= len(b.code) {
		list := make([][]byte, n)
		for i := range list {
			list[i] = b.segments[i].data
		}
		code, err := s.codecs.encode(list, b.size, max(b.sent+1, b.proactive))
		if err != nil { // cannot be: the block has 1 to 100 segments
			b.proactive, b.reactive = b.sent, 0
			return nil
		}
		b.code = code
	}
	p := wire.Packet{Kind: wire.FEC, Number: uint32(s.number), Seq: uint32(b.start), Index: uint8(n + b.sent),
		Size: uint16(b.size), Count: uint8(n), Last: uint16(len(b.segments[n-1].data)), Flags: s.flags()}
	body := b.code[b.sent]
	b.sent++
	if reactive {
		b.reactive--
		s.count.reactive++
		b.repairs = append(b.repairs, s.number)
	} else {
		s.count.proactive++
		b.last = s.number
	}
	s.sent(now, b.size)
	s.arm(now)
	return wire.Append(buf, &p, body, k)
}

// flags tell the receiver that its mark was heard. Every packet of the round trip
// after it does, as any of them may be lost.
func (s *sender) flags() uint8 {
	if s.reduce {
		return wire.FlagReduced
	}
	return 0
}

// control sends a packet without bytes of the stream.
func (s *sender) control(now time.Duration, kind wire.Kind, buf []byte, k *wire.Key) []byte {
	p := wire.Packet{Kind: kind, Number: uint32(s.number), Seq: uint32(s.cut)}
	s.sent(now, 0)
	return wire.Append(buf, &p, nil, k)
}

// sent notes a packet that goes out.
func (s *sender) sent(now time.Duration, bytes int) {
	s.log = append(s.log, transmission{now, bytes})
	s.number++
	s.pipe += bytes
}

// arm starts the timer if it is off.
func (s *sender) arm(now time.Duration) {
	if s.timeoutAt == 0 {
		s.timeoutAt = now + s.clock.timeout()
	}
}

// blocked reports whether the receiver alone keeps bytes from being sent.
func (s *sender) blocked() bool {
	return len(s.unsent) > 0 && !s.outstanding() && s.cut+int64(min(len(s.unsent), s.blockSize())) > s.limit
}

func (s *sender) blockSize() int {
	if b := s.current(); b != nil {
		return b.size
	}
	return s.segmentSize(s.window.cwnd)
}

// settle sets or clears the timer that asks a receiver without room again.
func (s *sender) settle(now time.Duration) {
	switch {
	case !s.blocked():
		s.probeAt, s.probing = 0, 0
	case s.probeAt == 0:
		s.probeAt = now + min(s.clock.timeout()<<min(s.probing, 10), mostTimeout)
	}
}

// tick does what is due.
func (s *sender) tick(now time.Duration) {
	if s.probeAt > 0 && now >= s.probeAt {
		s.probeAt, s.probe = 0, true
		s.probing++
	}
	if s.timeoutAt == 0 || now < s.timeoutAt {
		return
	}
	if !s.outstanding() {
		s.timeoutAt = 0
		return
	}
	s.timeout(now)
}

// timeout takes everything that has not arrived as lost. Reactive FEC goes first
// where there is one: it repairs a block whichever of its packets are missing.
func (s *sender) timeout(now time.Duration) {
	s.count.timeouts++
	s.window.collapse(s.pipe, s.number-1, s.mss, s.clock.backoff > 0)
	s.clock.backoff++
	any := false
	s.pipe, s.pipeFrom = 0, s.number
	s.finDue = s.fin != 0 && !s.finDone
	for _, b := range s.blocks {
		if b.complete {
			continue
		}
		if !b.closed {
			s.close(b)
		}
		b.repairs = b.repairs[:0]
		for i := range b.segments {
			g := &b.segments[i]
			g.again, g.pending = false, false
		}
		b.phase, b.reactive = phaseTimeout, 0
		want := s.needed(b.missing())
		if !s.config.NoReactive {
			b.reactive = s.stock(b, want)
		}
		s.again(b, want-b.reactive)
		any = true
	}
	// Everything may have arrived, and the acknowledgements not.
	s.probe = !any && !s.finDue
	s.timeoutAt = now + s.clock.timeout()
}
