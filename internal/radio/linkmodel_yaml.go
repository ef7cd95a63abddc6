package radio

import (
	"math"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/yamldoc"
)

func (pp *profileParser) parameter(name string, value float64, unit, source string) {
	pp.p.Parameters = append(pp.p.Parameters, Parameter{Name: "emulation." + name, Value: value, Unit: unit, Source: source})
}

func (pp *profileParser) queue(f yamldoc.Value, mtu int, mtuAt yamldoc.Value) Queue {
	var q Queue
	qm := queueKeys.Read(f)
	if b := qm.Field("bytes"); b.Present() {
		q.Bytes = size(qm, "bytes")
		if q.Bytes > 0 && q.Bytes < mtu && mtuAt.Mapping().Field("value").OK() {
			b.Problem("%d B, no packet of the MTU (%d B) would fit", q.Bytes, mtu)
		}
	}
	q.Packets = qm.Int("packets")
	if !qm.Field("bytes").Present() && !qm.Field("packets").Present() && f.IsMapping() {
		f.Problem("expected a bound in bytes, packets or both")
	}
	src := source(qm.Field("source"))
	if q.Bytes > 0 {
		pp.parameter("queue", float64(q.Bytes), "B", src)
	}
	if v := qm.Field("red"); v.Present() {
		rm := redKeys.Read(v)
		q.RED = &RED{
			MinBytes: size(rm, "min"), MaxBytes: size(rm, "max"), Weight: rm.Number("weight"), MaxProbability: rm.Number("max_probability"),
			Gentle: rm.Bool("gentle"), ECN: rm.Bool("ecn"),
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
	m := framingKeys.Read(v)
	f := &Framing{FrameBytes: size(m, "frame"), HeaderBytes: size(m, "header")}
	if m.Field("frame").OK() && m.Field("header").OK() && f.FrameBytes <= f.HeaderBytes {
		m.Field("frame").Problem("a frame of %d B with a header of %d B has no room for data", f.FrameBytes, f.HeaderBytes)
	}
	src := source(m.Field("source"))
	pp.parameter("framing.frame", float64(f.FrameBytes), "B", src)
	pp.parameter("framing.header", float64(f.HeaderBytes), "B", src)
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
	m := fecKeys.Read(v)
	f := &FEC{Code: FECCode(m.Word("code"))}
	src := source(m.Field("source"))
	for _, other := range fecCodes {
		for _, k := range other.keys.Keys {
			if x := m.Field(k.Name); f.Code != "" && string(f.Code) != other.keys.Name && x.Present() {
				x.Problem("belongs to a %s code", other.keys.Name)
			}
		}
	}
	switch f.Code {
	case FECReedSolomon:
		of := fecCodes.of(string(f.Code)).Fields(m.Mapping)
		f.BlockSymbols, f.DataSymbols, f.InterleavingDepth = of.Int("block"), of.Int("data"), of.Int("interleaving")
		if m.Field("data").OK() && m.Field("block").OK() && f.DataSymbols >= f.BlockSymbols {
			m.Field("data").Problem("%d symbols of data in a block of %d leave none to correct with", f.DataSymbols, f.BlockSymbols)
		}
		f.CodeRate = float64(f.DataSymbols) / float64(f.BlockSymbols)
	case FECConvolutional:
		f.CodeRate = share(m.Field("rate").Required())
		f.ResidualBER = fecCodes.of(string(f.Code)).Fields(m.Mapping).Number("residual_bit_error_rate")
	}
	pp.parameter("fec.rate", f.CodeRate, "bit/bit", src)
	return f
}

func (pp *profileParser) arq(v yamldoc.Value, framed bool) *ARQ {
	if !v.Present() {
		return nil
	}
	m := arqKeys.Read(v)
	a := &ARQ{NACKTimerFrames: m.Int("nack_timer"), Persistence: m.Int("persistence"), InOrder: m.Bool("in_order")}
	src := source(m.Field("source"))
	pp.parameter("arq.nack_timer", float64(a.NACKTimerFrames), "frames", src)
	pp.parameter("arq.persistence", float64(a.Persistence), "retransmissions", src)
	if !framed {
		v.Problem("repeats frames, so framing must be given too")
	}
	return a
}

func (pp *profileParser) access(v yamldoc.Value, e *Emulation) *Access {
	if !v.Present() {
		return nil
	}
	m := accessKeys.Read(v)
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
		tm := tdmaKeys.Read(t)
		a.TDMA = &TDMA{Slot: span(tm, "slot"), Guard: span(tm, "guard")}
		owners := tm.Field("owners").Required()
		for _, o := range owners.List() {
			a.TDMA.Owners = append(a.TDMA.Owners, Role(o.OneOf("", roleWord.Words...)))
		}
		if owners.IsList() && (len(a.TDMA.Owners) == 0 || len(a.TDMA.Owners) > maxOwners) {
			owners.Problem("expected 1 to %d slots, found %d", maxOwners, len(a.TDMA.Owners))
		}
		if airtime := e.unitAirtime(); m.OK() && airtime > a.TDMA.Slot-a.TDMA.Guard && a.TDMA.Slot > 0 {
			t.Problem("the longest transmission takes %s at the profile's rate and does not fit into a slot of %s with a guard of %s", airtime.Round(time.Microsecond), a.TDMA.Slot, a.TDMA.Guard)
		}
	}
	if c.Present() {
		cm := csmaKeys.Read(c)
		a.CSMA = &CSMA{DIFS: span(cm, "difs"), Slot: span(cm, "slot"), WindowMin: cm.Int("window_min"), WindowMax: cm.Int("window_max"), Retries: cm.Int("retries")}
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
	m := reorderingKeys.Read(v)
	r := &Reordering{Share: m.Number("share"), Delay: span(m, "delay")}
	src := source(m.Field("source"))
	pp.parameter("reordering.share", r.Share, "", src)
	pp.parameter("reordering.delay", r.Delay.Seconds()*1e3, "ms", src)
	return r
}

func (pp *profileParser) duplication(v yamldoc.Value) *Duplication {
	if !v.Present() {
		return nil
	}
	m := duplicationKeys.Read(v)
	d := &Duplication{Share: m.Number("share")}
	pp.parameter("duplication.share", d.Share, "", source(m.Field("source")))
	return d
}
