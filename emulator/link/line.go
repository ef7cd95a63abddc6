package link

import (
	"fmt"
	"math"
	"time"

	"linktrial/emulator/channel"
	"linktrial/internal/radio"
)

// Line is one direction of a link without its queues: its channel's
// realisation, and how long what takes. The all-knowing sender has the same.
type Line struct {
	Process     channel.Process
	Opportunity time.Duration // of the process

	own      channel.Conditions
	course   *channel.Course // nil: own holds throughout
	codeRate float64
	framing  *radio.Framing
	overhead int     // bytes about a packet, where there is no framing
	bits     float64 // of the longest transmission
}

// NewLine draws one direction of a link of a checked network.
func NewLine(n *radio.Network, k *radio.Link, from, to radio.Role, seed uint64) (*Line, error) {
	l := newLine(n, k, to)
	p := params(n, k, l)
	l.bits = float64(l.largest(n.MTUBytes) * 8)
	c := *k.Toward(to)
	l.Opportunity = channel.Opportunity(c, p)
	var err error
	if l.Process, err = channel.New(c, p, channel.Seed(seed, from, to)); err != nil {
		return nil, fmt.Errorf("link %s to %s: %w", from, to, err)
	}
	return l, nil
}

func newLine(n *radio.Network, k *radio.Link, to radio.Role) *Line {
	l := &Line{own: channel.Conditions{Rate: k.RateBitsPerSecond, Delay: k.Delay}, codeRate: 1, framing: n.Framing, overhead: n.FrameOverheadBytes}
	if n.FEC != nil {
		l.codeRate = n.FEC.CodeRate
	}
	l.course = channel.NewCourse(*k.Toward(to), l.own)
	return l
}

func params(n *radio.Network, k *radio.Link, l *Line) channel.Params {
	p := channel.Params{
		Packet: l.Airtime(n.MTUBytes, k.RateBitsPerSecond), Unit: l.Air(l.largest(n.MTUBytes), k.RateBitsPerSecond),
		Bit: 1e9 / (k.RateBitsPerSecond * l.codeRate),
	}
	if n.FEC != nil && n.FEC.Code == radio.FECReedSolomon {
		p.Code, p.Bit = n.FEC, 1e9/k.RateBitsPerSecond
	}
	return p
}

// Conditions are rate and delay of what starts at a moment, and until when.
func (l *Line) Conditions(at time.Duration) (channel.Conditions, time.Duration) {
	if l.course == nil {
		return l.own, channel.Forever
	}
	return l.course.At(at)
}

// Extremes are the lowest rate but 0, the highest rate and the shortest delay
// of the line at any time.
func (l *Line) Extremes() (slowest, fastest float64, nearest time.Duration) {
	if l.course == nil {
		return l.own.Rate, l.own.Rate, l.own.Delay
	}
	return l.course.Extremes()
}

// Air is how long so many bytes, headers included, are on the air at a rate,
// to the nearest nanosecond.
func (l *Line) Air(bytes int, rate float64) time.Duration {
	return max(1, time.Duration(math.Round(float64(bytes)*8e9/(rate*l.codeRate))))
}

// Units is how many transmissions a packet takes, how many bytes each has on
// the air, and how many the last one.
func (l *Line) Units(packetBytes int) (count, each, last int) {
	if l.framing == nil {
		return 1, packetBytes + l.overhead, packetBytes + l.overhead
	}
	count, all := l.framing.Frames(packetBytes)
	return count, l.framing.FrameBytes, all - (count-1)*l.framing.FrameBytes
}

// largest is the bytes on the air of the longest transmission.
func (l *Line) largest(mtu int) int {
	count, each, last := l.Units(mtu)
	if count > 1 {
		return each
	}
	return last
}

// Airtime is how long a packet is on the air in all.
func (l *Line) Airtime(packetBytes int, rate float64) time.Duration {
	count, each, last := l.Units(packetBytes)
	return l.Air(last, rate) + time.Duration(count-1)*l.Air(each, rate)
}

// Airtime is how long an IP packet of the given size occupies the medium at
// the link's own rate, with the frames around it.
func Airtime(n *radio.Network, k *radio.Link, bytes int) time.Duration {
	return newLine(n, k, k.B).Airtime(bytes, k.RateBitsPerSecond)
}
