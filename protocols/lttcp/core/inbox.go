package core

import (
	"slices"

	"linktrial/protocols/lttcp/wire"
)

// Bounds of the receiving side.
const (
	remembered = 4096 // packet numbers below the highest that are known apart
	// mostBlocks bounds how many blocks are kept: those of a buffer of the
	// shortest segments, and the receiver of an honest sender has far fewer.
	mostBlocks = 4096
)

// interval is a part of the stream that arrived out of order; stamp says when it last grew.
type interval struct {
	from, to int64
	stamp    uint64
}

// arriving is a block as the receiver knows it.
type arriving struct {
	start    int64
	size     int
	count    int // segments; 0: not known yet
	last     int // length of the last segment
	segments [][]byte
	code     map[int][]byte // by place behind the segments
	got      int
	complete bool
}

// end is where the block ends, as far as is known; sure reports whether it cannot be later.
func (a *arriving) end() (end int64, sure bool) {
	if a.count > 0 {
		return a.start + int64((a.count-1)*a.size+a.last), true
	}
	return a.start + int64(len(a.segments)*a.size), false
}

// inbox is the receiving side of a connection.
type inbox struct {
	buffer int
	codecs codecs

	largest  int64
	received int64
	seen     [remembered / 64]uint64

	next    int64 // everything before has arrived
	read    int64 // and so much of it has been read
	limit   int64 // as it was advertised last
	ready   [][]byte
	waiting map[int64][]byte // out of order, by place
	blocks  []*arriving      // by start
	ranges  []interval
	stamps  uint64
	held    int // bytes of segments and code

	fin    int64 // where the stream ends; -1: not known
	ackDue bool
	echo   bool
	marked bool // congestion experienced, and the sender has not reacted yet

	restored int64 // segments that the code gave
	useless  int64 // packets of the code of complete blocks
	marks    int64
}

func newInbox(buffer int) *inbox {
	return &inbox{buffer: buffer, waiting: map[int64][]byte{}, fin: -1}
}

// fresh notes a packet's number, and reports whether it is new.
func (in *inbox) fresh(low uint32) bool {
	n := unwrap(in.largest, low)
	if n <= 0 || n <= in.largest-remembered || n > in.largest+1<<30 {
		return false
	}
	bit := func(n int64) (*uint64, uint64) {
		i := n % remembered
		return &in.seen[i/64], 1 << (i % 64)
	}
	if n > in.largest {
		for i := max(in.largest+1, n-remembered+1); i < n; i++ {
			w, m := bit(i)
			*w &^= m
		}
		in.largest, in.echo = n, true
	} else if w, m := bit(n); *w&m != 0 {
		return false
	}
	w, m := bit(n)
	*w |= m
	in.received++
	return true
}

// take takes in a packet of the stream, of the code, the stream's end or a probe.
func (in *inbox) take(p *wire.Packet, ecn uint8) {
	if !in.fresh(p.Number) {
		return
	}
	in.ackDue = true
	if p.Flags&wire.FlagReduced != 0 {
		in.marked = false
	}
	if ecn == 3 {
		in.marked = true
		in.marks++
	}
	switch p.Kind {
	case wire.Data:
		in.data(p)
	case wire.FEC:
		in.code(p)
	case wire.Fin:
		at := unwrap(in.next, p.Seq)
		if in.fin < 0 && at >= in.next && at >= in.top() {
			in.fin = at
		}
	}
	in.advance()
}

// top is the end of what has arrived.
func (in *inbox) top() int64 {
	if n := len(in.ranges); n > 0 {
		return max(in.next, in.ranges[n-1].to)
	}
	return in.next
}

// block finds a block, or makes one; nil where the packet contradicts what is known.
func (in *inbox) block(start int64, size int) *arriving {
	i, found := slices.BinarySearchFunc(in.blocks, start, func(a *arriving, start int64) int { return int(min(max(a.start-start, -1), 1)) })
	if found {
		if a := in.blocks[i]; a.size == size {
			return a
		}
		return nil
	}
	if start < 0 || len(in.blocks) >= mostBlocks {
		return nil
	}
	if i > 0 {
		if end, sure := in.blocks[i-1].end(); sure && end > start {
			return nil
		}
	}
	a := &arriving{start: start, size: size}
	in.blocks = slices.Insert(in.blocks, i, a)
	return a
}

// fits reports whether so many bytes may be kept: the buffer twice, for segments
// and code, and the segments of the block that the stream has got to.
func (in *inbox) fits(n int) bool { return in.held+n <= 2*in.buffer+wire.MaxPackets*LongestSegment }

func (in *inbox) data(p *wire.Packet) {
	seq, index, size := unwrap(in.next, p.Seq), int(p.Index), int(p.Size)
	end := seq + int64(len(p.Body))
	start := seq - int64(index*size)
	switch {
	case end <= in.next && !in.holds(start), end > in.limit, in.fin >= 0 && end > in.fin, !in.fits(len(p.Body)):
		return
	}
	a := in.block(start, size)
	if a == nil || a.complete || a.count > 0 && index >= a.count {
		return
	}
	short := len(p.Body) < size
	switch {
	case a.count > 0 && index == a.count-1 && len(p.Body) != a.last, a.count > 0 && index < a.count-1 && short,
		short && index < len(a.segments)-1: // a shorter one ends the block
		return
	}
	for len(a.segments) <= index {
		a.segments = append(a.segments, nil)
	}
	if a.segments[index] != nil {
		return
	}
	a.got++
	in.keep(a, index, append([]byte(nil), p.Body...))
	in.restore(a)
}

// holds reports whether there is a block with this start.
func (in *inbox) holds(start int64) bool {
	return slices.ContainsFunc(in.blocks, func(a *arriving) bool { return a.start == start })
}

// keep puts a segment into its block, and into the stream.
func (in *inbox) keep(a *arriving, index int, data []byte) {
	a.segments[index] = data
	in.held += len(data)
	at := a.start + int64(index*a.size)
	to := at + int64(len(data))
	if at < in.next || slices.ContainsFunc(in.ranges, func(r interval) bool { return at < r.to && r.from < to }) {
		return // only a sender that contradicts itself gets here with something new
	}
	in.waiting[at] = data
	in.addRange(at, to)
}

func (in *inbox) code(p *wire.Packet) {
	start, size, count := unwrap(in.next, p.Seq), int(p.Size), int(p.Count)
	end := start + int64((count-1)*size+int(p.Last))
	if end <= in.next || end > in.limit || in.fin >= 0 && end > in.fin || !in.fits(size) {
		in.useless++
		return
	}
	a := in.block(start, size)
	if a == nil || a.count > 0 && (a.count != count || a.last != int(p.Last)) || len(a.segments) > count {
		return
	}
	if a.complete {
		in.useless++
		return
	}
	if a.count == 0 {
		for i, g := range a.segments {
			if g != nil && (i < count-1 && len(g) != size || i == count-1 && len(g) != int(p.Last)) {
				return
			}
		}
		a.count, a.last = count, int(p.Last)
		for len(a.segments) < count {
			a.segments = append(a.segments, nil)
		}
	}
	i := int(p.Index) - count
	if a.code[i] != nil {
		return
	}
	if a.code == nil {
		a.code = map[int][]byte{}
	}
	a.code[i] = append([]byte(nil), p.Body...)
	in.held += size
	a.got++
	in.restore(a)
}

// restore completes a block once it has as many packets as segments.
func (in *inbox) restore(a *arriving) {
	if a.count == 0 || a.got < a.count || a.complete {
		return
	}
	a.complete = true
	if len(a.code) > 0 {
		full := slices.Clone(a.segments)
		if err := in.codecs.restore(full, a.code, a.size, a.last); err != nil {
			return // cannot be: there are enough of them
		}
		for i, g := range full {
			if a.segments[i] == nil {
				in.restored++
				in.keep(a, i, g)
			}
		}
	}
	in.held -= len(a.code) * a.size
	a.code = nil
}

// addRange notes a part of the stream that has arrived out of order.
func (in *inbox) addRange(from, to int64) {
	in.stamps++
	i := 0
	for i < len(in.ranges) && in.ranges[i].to < from {
		i++
	}
	j := i
	for j < len(in.ranges) && in.ranges[j].from <= to {
		from, to = min(from, in.ranges[j].from), max(to, in.ranges[j].to)
		j++
	}
	in.ranges = slices.Replace(in.ranges, i, j, interval{from, to, in.stamps})
}

// advance hands on what is in order, and forgets blocks that are over.
func (in *inbox) advance() {
	for {
		data := in.waiting[in.next]
		if data == nil {
			break
		}
		delete(in.waiting, in.next)
		in.ready = append(in.ready, data)
		in.next += int64(len(data))
	}
	for len(in.ranges) > 0 && in.ranges[0].to <= in.next {
		in.ranges = in.ranges[1:]
	}
	for len(in.blocks) > 0 {
		a := in.blocks[0]
		end, sure := a.end()
		if sure && end > in.next || !sure && (len(in.blocks) == 1 || in.blocks[1].start > in.next) && (in.fin < 0 || in.fin > in.next) {
			break
		}
		in.forget(a)
		in.blocks = in.blocks[1:]
	}
}

func (in *inbox) forget(a *arriving) {
	for _, g := range a.segments {
		in.held -= len(g)
	}
	in.held -= len(a.code) * a.size
}

// finished reports whether the whole stream has arrived.
func (in *inbox) finished() bool { return in.fin >= 0 && in.next >= in.fin }

// takeBytes hands the application what is in order.
func (in *inbox) takeBytes(b []byte) (n int) {
	for n < len(b) && len(in.ready) > 0 {
		c := copy(b[n:], in.ready[0])
		n += c
		if in.ready[0] = in.ready[0][c:]; len(in.ready[0]) == 0 {
			in.ready = in.ready[1:]
		}
	}
	if len(in.ready) == 0 {
		in.ready = nil
	}
	in.read += int64(n)
	// The sender learns of the room before it has none, but not of every byte.
	if in.limit-in.next < int64(in.buffer/2) && in.read+int64(in.buffer)-in.limit >= int64(in.buffer/4) {
		in.ackDue = true
	}
	return n
}

// ack writes an acknowledgement.
func (in *inbox) ack(buf []byte, k *wire.Key) []byte {
	in.ackDue = false
	in.limit = max(in.limit, in.read+int64(in.buffer))
	p := wire.Packet{Kind: wire.Ack, Next: uint32(in.next), Limit: uint32(in.limit), Largest: uint32(in.largest), Received: uint32(in.received)}
	if in.finished() {
		p.Next++
	}
	if in.marked {
		p.Flags |= wire.FlagCongestion
	}
	if in.echo {
		in.echo = false
		p.Flags |= wire.FlagEcho
	}
	// The parts that grew last, first (RFC 2018, section 4).
	below := in.stamps + 1
	for range min(len(in.ranges), wire.MaxRanges) {
		var newest *interval
		for i := range in.ranges {
			if r := &in.ranges[i]; r.stamp < below && (newest == nil || r.stamp > newest.stamp) {
				newest = r
			}
		}
		below = newest.stamp
		p.AddRange(wire.Range{From: uint32(newest.from), To: uint32(newest.to)})
	}
	for _, a := range in.blocks {
		if end, sure := a.end(); !sure && end <= in.next {
			continue // nothing that the ranges do not say
		}
		if !p.AddBlock(wire.Block{Start: uint32(a.start), Got: uint8(a.got)}) {
			break
		}
	}
	return wire.Append(buf, &p, nil, k)
}
