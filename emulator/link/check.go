package link

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"linktrial/emulator/channel"
	"linktrial/internal/radio"
)

// checker collects everything that is wrong.
type checker struct{ errs []error }

func (c *checker) bad(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// Check returns everything that is wrong with a network, at once.
func Check(n *radio.Network) error {
	c := &checker{}
	if n.MTUBytes < 68 || n.MTUBytes > 65535 {
		c.bad("MTU is %d bytes, expected 68 (the least that IPv4 allows, RFC 791) to 65535", n.MTUBytes)
	}
	switch n.Medium {
	case radio.MediumFullDuplex, radio.MediumHalfDuplex, radio.MediumShared:
	default:
		c.bad("medium %q, expected %s, %s or %s", n.Medium, radio.MediumFullDuplex, radio.MediumHalfDuplex, radio.MediumShared)
	}
	if n.Turnaround < 0 {
		c.bad("turnaround is %s, expected no negative time", n.Turnaround)
	}
	if n.FrameOverheadBytes < 0 {
		c.bad("frame overhead is %d bytes, expected no negative number", n.FrameOverheadBytes)
	}
	c.queue(n)
	c.layers(n)
	known := c.nodes(n)
	framed := len(c.errs) == 0 // airtimes mean something
	c.links(n, known)
	if framed && len(c.errs) == 0 {
		c.slots(n)
	}
	return errors.Join(c.errs...)
}

func (c *checker) nodes(n *radio.Network) map[radio.Role]bool {
	if len(n.Nodes) < 2 || len(n.Nodes) > 64 {
		c.bad("%d nodes, expected 2 to 64", len(n.Nodes))
	}
	known := map[radio.Role]bool{}
	for _, v := range n.Nodes {
		if known[v.Role] {
			c.bad("two nodes are %q", v.Role)
		}
		known[v.Role] = true
	}
	return known
}

func (c *checker) links(n *radio.Network, known map[radio.Role]bool) {
	pairs := map[[2]radio.Role]bool{}
	for _, k := range n.Links {
		name := fmt.Sprintf("link %s–%s", k.A, k.B)
		if !known[k.A] || !known[k.B] || k.A == k.B {
			c.bad("%s does not join two nodes of the network", name)
		}
		if pairs[[2]radio.Role{k.A, k.B}] || pairs[[2]radio.Role{k.B, k.A}] {
			c.bad("%s is given twice", name)
		}
		pairs[[2]radio.Role{k.A, k.B}] = true
		if !(k.RateBitsPerSecond >= 1 && k.RateBitsPerSecond <= 1e12) {
			c.bad("%s: rate is %g bit/s, expected 1 to 1e12", name, k.RateBitsPerSecond)
		}
		if k.Delay < 0 || k.Delay > time.Hour {
			c.bad("%s: delay is %s, expected 0 to 1h", name, k.Delay)
		}
		for _, to := range []radio.Role{k.B, k.A} {
			if err := channel.Check(*k.Toward(to)); err != nil {
				c.bad("%s towards %s: %w", name, to, err)
			}
		}
	}
}

func (c *checker) queue(n *radio.Network) {
	q := n.Queue
	if q.Bytes < 0 || q.Packets < 0 {
		c.bad("queue is %d bytes and %d packets, expected no negative numbers", q.Bytes, q.Packets)
	} else if q.Bytes > 0 && q.Bytes < n.MTUBytes {
		c.bad("queue is %d bytes, less than one packet of %d", q.Bytes, n.MTUBytes)
	}
	if r := q.RED; r != nil {
		if r.MinBytes < 0 || r.MaxBytes <= r.MinBytes {
			c.bad("RED from %d to %d bytes, expected the upper threshold above the lower", r.MinBytes, r.MaxBytes)
		}
		if !(r.Weight > 0 && r.Weight <= 1) || !(r.MaxProbability > 0 && r.MaxProbability <= 1) {
			c.bad("RED with a weight of %g and a probability of at most %g, expected both above 0 and at most 1", r.Weight, r.MaxProbability)
		}
	}
}

// layers checks framing, code, ARQ and access by themselves.
func (c *checker) layers(n *radio.Network) {
	if f := n.Framing; f != nil && (f.HeaderBytes < 0 || f.FrameBytes <= f.HeaderBytes || f.FrameBytes > 65535) {
		c.bad("framing: a frame of %d bytes with a header of %d has no room for data", f.FrameBytes, f.HeaderBytes)
	}
	if f := n.FEC; f != nil {
		if !(f.CodeRate > 0 && f.CodeRate <= 1) {
			c.bad("forward error correction of rate %g, expected above 0 and at most 1", f.CodeRate)
		}
		switch f.Code {
		case radio.FECConvolutional:
		case radio.FECReedSolomon:
			if f.BlockSymbols < 3 || f.BlockSymbols > 255 || f.DataSymbols < 1 || f.DataSymbols >= f.BlockSymbols || f.InterleavingDepth < 0 || f.InterleavingDepth > 1024 {
				c.bad("forward error correction: Reed–Solomon (%d, %d), interleaved %d deep, expected fewer data than block symbols, at most 255, and a depth up to 1024", f.BlockSymbols, f.DataSymbols, f.InterleavingDepth)
			}
		default:
			c.bad("forward error correction by an unknown code %q", f.Code)
		}
	}
	if a := n.ARQ; a != nil {
		if n.Framing == nil {
			c.bad("ARQ repeats frames, and there is no framing")
		}
		if a.NACKTimerFrames < 0 || a.Persistence < 0 {
			c.bad("ARQ with a NACK timer of %d frames and %d retransmissions, expected no negative numbers", a.NACKTimerFrames, a.Persistence)
		}
	}
	if r := n.Reordering; r != nil && (!(r.Share >= 0 && r.Share <= 1) || r.Delay < 0 || r.Delay > time.Hour) {
		c.bad("reordering: a share of %g is held back for %s, expected 0 to 1 and 0 to 1h", r.Share, r.Delay)
	}
	if d := n.Duplication; d != nil && !(d.Share >= 0 && d.Share <= 1) {
		c.bad("duplication: a share of %g, expected 0 to 1", d.Share)
	}
	a := n.Access
	if a == nil {
		return
	}
	if n.Medium != radio.MediumShared {
		c.bad("medium access orders turns on a shared medium, and this one is %s", n.Medium)
	}
	if (a.TDMA == nil) == (a.CSMA == nil) {
		c.bad("medium access: expected either TDMA or CSMA")
	}
	if t := a.TDMA; t != nil {
		if t.Slot <= 0 || t.Slot > time.Hour || t.Guard < 0 || t.Guard >= t.Slot || len(t.Owners) == 0 {
			c.bad("TDMA with %d slots of %s and a guard of %s, expected a slot longer than its guard and at least one", len(t.Owners), t.Slot, t.Guard)
		}
		for _, v := range n.Nodes {
			if !slices.Contains(t.Owners, v.Role) {
				c.bad("TDMA gives node %s no slot", v.Role)
			}
		}
	}
	if s := a.CSMA; s != nil {
		if s.DIFS < 0 || s.DIFS > time.Hour || s.Slot <= 0 || s.Slot > time.Hour {
			c.bad("CSMA with an interframe space of %s and slots of %s, expected no negative time and slots above 0", s.DIFS, s.Slot)
		}
		if s.WindowMin < 0 || s.WindowMax < s.WindowMin || s.WindowMax > 1<<20 || s.Retries < 0 {
			c.bad("CSMA with windows from %d to %d and %d retries, expected no negative numbers and the largest window no less than the smallest", s.WindowMin, s.WindowMax, s.Retries)
		}
	}
}

// slots checks that every transmission fits into a TDMA slot.
func (c *checker) slots(n *radio.Network) {
	if n.Access == nil || n.Access.TDMA == nil {
		return
	}
	t := n.Access.TDMA
	for i := range n.Links {
		k := &n.Links[i]
		for _, to := range []radio.Role{k.A, k.B} {
			l := newLine(n, k, to)
			slowest, _, _ := l.Extremes()
			if slowest == 0 {
				continue // never sends
			}
			if air := l.Air(l.largest(n.MTUBytes), slowest); air > t.Slot-t.Guard {
				c.bad("link %s–%s: a transmission takes %s at %g bit/s and does not fit into a TDMA slot of %s with a guard of %s", k.A, k.B, air, slowest, t.Slot, t.Guard)
			}
		}
	}
}
