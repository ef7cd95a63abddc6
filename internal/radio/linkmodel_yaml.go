package radio

import (
	"math"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/yamldoc"
)

func (pp *profileParser) figure(name string, value float64, unit, source string) {
	pp.p.Figures = append(pp.p.Figures, Figure{Name: "emulation." + name, Value: value, Unit: unit, Source: source})
}

func (pp *profileParser) queue(f yamldoc.Value, mtu int, mtuAt yamldoc.Value) Queue {
	var q Queue
	qm := f.Mapping("bytes", "packets", "red", "source")
	if b := qm.Field("bytes"); b.Present() {
		q.Bytes = bounded(b, 1, maxQueueBytes)
		if q.Bytes > 0 && q.Bytes < mtu && mtuAt.Mapping().Field("value").OK() {
			b.Problem("%d B, no packet of the MTU (%d B) would fit", q.Bytes, mtu)
		}
	}
	q.Packets = int(qm.Field("packets").Int(0, 1, maxQueueCount))
	if !qm.Field("bytes").Present() && !qm.Field("packets").Present() && f.IsMapping() {
		f.Problem("expected a bound in bytes, packets or both")
	}
	src := source(qm.Field("source"))
	if q.Bytes > 0 {
		pp.figure("queue", float64(q.Bytes), "B", src)
	}
	if v := qm.Field("red"); v.Present() {
		rm := v.Mapping("min", "max", "weight", "max_probability", "gentle", "ecn")
		q.RED = &RED{
			MinBytes: bounded(rm.Field("min").Required(), 0, maxQueueBytes), MaxBytes: bounded(rm.Field("max").Required(), 1, maxQueueBytes),
			Weight: rm.Field("weight").Required().Float(1, 1e-9, 1), MaxProbability: rm.Field("max_probability").Required().Float(1, 1e-9, 1),
			Gentle: rm.Field("gentle").Bool(false), ECN: rm.Field("ecn").Bool(false),
		}
		switch {
		case !rm.Field("max").OK() || !rm.Field("min").OK() || !f.OK():
		case q.RED.MaxBytes <= q.RED.MinBytes:
			rm.Field("max").Problem("%d B is not more than min, %d B", q.RED.MaxBytes, q.RED.MinBytes)
		case q.Bytes == 0:
			v.Problem("needs a bound of the queue in bytes")
		case qm.Field("bytes").OK() && q.RED.MaxBytes > q.Bytes:
			rm.Field("max").Problem("%d B is more than the queue holds, %d B", q.RED.MaxBytes, q.Bytes)
		}
	}
	return q
}

func (pp *profileParser) framing(v yamldoc.Value) *Framing {
	if !v.Present() {
		return nil
	}
	m := v.Mapping("frame", "header", "source")
	f := &Framing{FrameBytes: bounded(m.Field("frame").Required(), 1, maxMTU), HeaderBytes: bounded(m.Field("header").Required(), 0, maxMTU)}
	if m.Field("frame").OK() && m.Field("header").OK() && f.FrameBytes <= f.HeaderBytes {
		m.Field("frame").Problem("a frame of %d B with a header of %d B has no room for data", f.FrameBytes, f.HeaderBytes)
	}
	src := source(m.Field("source"))
	pp.figure("framing.frame", float64(f.FrameBytes), "B", src)
	pp.figure("framing.header", float64(f.HeaderBytes), "B", src)
	return f
}

// share reads a number such as 0.875 or a fraction such as 223/255, of more than 0 and at most 1.
func share(v yamldoc.Value) float64 {
	if !v.Present() || v.IsList() || v.IsMapping() {
		v.String("")
		return 1
	}
	s := v.String("")
	num, den, isFraction := strings.Cut(s, "/")
	x, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if isFraction && err == nil {
		var y float64
		y, err = strconv.ParseFloat(strings.TrimSpace(den), 64)
		x /= y
	}
	if err != nil || math.IsNaN(x) || x <= 0 || x > 1 {
		v.Problem("expected a number or a fraction such as 1/2, more than 0 and at most 1, found %q", s)
		return 1
	}
	return x
}

func (pp *profileParser) fec(v yamldoc.Value) *FEC {
	if !v.Present() {
		return nil
	}
	m := v.Mapping("code", "block", "data", "interleaving", "rate", "residual_bit_error_rate", "source")
	f := &FEC{Code: FECCode(m.Field("code").Required().OneOf("", string(FECReedSolomon), string(FECConvolutional)))}
	src := source(m.Field("source"))
	only := func(code string, keys ...string) {
		for _, k := range keys {
			if x := m.Field(k); x.Present() {
				x.Problem("belongs to a %s code", code)
			}
		}
	}
	switch f.Code {
	case FECReedSolomon:
		only("convolutional", "rate", "residual_bit_error_rate")
		f.BlockSymbols = int(m.Field("block").Required().Int(255, 3, 255)) // of GF(2^8)
		f.DataSymbols = int(m.Field("data").Required().Int(223, 1, 255))
		f.InterleavingDepth = int(m.Field("interleaving").Int(1, 1, 1024))
		if m.Field("data").OK() && m.Field("block").OK() && f.DataSymbols >= f.BlockSymbols {
			m.Field("data").Problem("%d symbols of data in a block of %d leave none to correct with", f.DataSymbols, f.BlockSymbols)
		}
		f.CodeRate = float64(f.DataSymbols) / float64(f.BlockSymbols)
	case FECConvolutional:
		only("reed-solomon", "block", "data", "interleaving")
		f.CodeRate = share(m.Field("rate").Required())
		f.ResidualBER = m.Field("residual_bit_error_rate").Required().Float(1e-5, 1e-15, 0.5)
	}
	pp.figure("fec.rate", f.CodeRate, "bit/bit", src)
	return f
}

func (pp *profileParser) arq(v yamldoc.Value, framed bool) *ARQ {
	if !v.Present() {
		return nil
	}
	m := v.Mapping("nack_timer", "persistence", "in_order", "source")
	a := &ARQ{
		NACKTimerFrames: int(m.Field("nack_timer").Required().Int(1, 0, 100_000)),
		Persistence:     int(m.Field("persistence").Required().Int(0, 0, 10_000)),
		InOrder:         m.Field("in_order").Bool(true),
	}
	src := source(m.Field("source"))
	pp.figure("arq.nack_timer", float64(a.NACKTimerFrames), "frames", src)
	pp.figure("arq.persistence", float64(a.Persistence), "retransmissions", src)
	if !framed {
		v.Problem("repeats frames, so framing must be given too")
	}
	return a
}

func (pp *profileParser) access(v yamldoc.Value, e *Emulation) *Access {
	if !v.Present() {
		return nil
	}
	m := v.Mapping("tdma", "csma", "source")
	source(m.Field("source"))
	t, c := m.Field("tdma"), m.Field("csma")
	if v.IsMapping() && t.Present() == c.Present() {
		v.Problem("expected either tdma or csma")
	}
	if e.Medium != "" && e.Medium != MediumShared {
		v.Problem("sets the order of transmissions on a shared medium; this one is %s", e.Medium)
	}
	a := &Access{}
	if t.Present() {
		tm := t.Mapping("slot", "guard", "owners")
		a.TDMA = &TDMA{Slot: atLeast(tm.Field("slot").Required(), 0), Guard: delay(tm.Field("guard"))}
		if f := tm.Field("slot"); f.Present() && a.TDMA.Slot < minSlot {
			f.Problem("expected at least %s, found %s", minSlot, a.TDMA.Slot)
		}
		owners := tm.Field("owners").Required()
		for _, o := range owners.List() {
			a.TDMA.Owners = append(a.TDMA.Owners, Role(o.OneOf("", string(RoleClient), string(RoleRelay), string(RoleServer))))
		}
		if owners.IsList() && (len(a.TDMA.Owners) == 0 || len(a.TDMA.Owners) > 1000) {
			owners.Problem("expected 1 to 1000 slots, found %d", len(a.TDMA.Owners))
		}
		if airtime := e.unitAirtime(); m.OK() && airtime > a.TDMA.Slot-a.TDMA.Guard && a.TDMA.Slot > 0 {
			t.Problem("the longest transmission takes %s at the profile's rate and does not fit into a slot of %s with a guard of %s", airtime.Round(time.Microsecond), a.TDMA.Slot, a.TDMA.Guard)
		}
	}
	if c.Present() {
		cm := c.Mapping("difs", "slot", "window_min", "window_max", "retries")
		a.CSMA = &CSMA{
			DIFS: delay(cm.Field("difs").Required()), Slot: atLeast(cm.Field("slot").Required(), 0),
			WindowMin: int(cm.Field("window_min").Required().Int(1, 1, 1<<20)), WindowMax: int(cm.Field("window_max").Required().Int(1<<20, 1, 1<<20)),
			Retries: int(cm.Field("retries").Required().Int(0, 0, 1000)),
		}
		if f := cm.Field("slot"); f.Present() && a.CSMA.Slot < minSlot {
			f.Problem("expected at least %s, found %s", minSlot, a.CSMA.Slot)
		}
		if cm.Field("window_max").OK() && cm.Field("window_min").OK() && a.CSMA.WindowMax < a.CSMA.WindowMin {
			cm.Field("window_max").Problem("%d is less than window_min, %d", a.CSMA.WindowMax, a.CSMA.WindowMin)
		}
	}
	return a
}

// unitAirtime is how long the longest single transmission occupies the medium.
func (e *Emulation) unitAirtime() time.Duration {
	bytes, r := e.MTUBytes+e.FrameOverheadBytes, e.RateBitsPerSecond
	if e.Framing != nil {
		bytes = min(e.Framing.FrameBytes, e.MTUBytes+e.Framing.HeaderBytes)
	}
	if e.FEC != nil {
		r *= e.FEC.CodeRate
	}
	if r <= 0 {
		return 0
	}
	return time.Duration(float64(bytes) * 8e9 / r)
}

func (pp *profileParser) reordering(v yamldoc.Value) *Reordering {
	if !v.Present() {
		return nil
	}
	m := v.Mapping("share", "delay", "source")
	r := &Reordering{Share: m.Field("share").Required().Float(0, 0, 1), Delay: delay(m.Field("delay").Required())}
	src := source(m.Field("source"))
	pp.figure("reordering.share", r.Share, "", src)
	pp.figure("reordering.delay", r.Delay.Seconds()*1e3, "ms", src)
	return r
}

func (pp *profileParser) duplication(v yamldoc.Value) *Duplication {
	if !v.Present() {
		return nil
	}
	m := v.Mapping("share", "source")
	d := &Duplication{Share: m.Field("share").Required().Float(0, 0, 1)}
	pp.figure("duplication.share", d.Share, "", source(m.Field("source")))
	return d
}
