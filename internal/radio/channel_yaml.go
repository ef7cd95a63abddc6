package radio

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"time"

	"linktrial/internal/yamldoc"
	"linktrial/internal/yamlschema"
)

// channel reads an error process, one of models. It accepts only the keys of its model, and
// requires those that have no default.
func (pp *profileParser) channel(m yamldoc.Mapping, models variants) Channel {
	c := Channel{Model: ChannelModel(m.Field("model").Required().OneOf("", models.words()...))}
	if c.Model == "" {
		return c // the model's own problem is noted
	}
	f := models.of(string(c.Model)).Fields(m)
	switch c.Model {
	case ChannelUniform:
		c.Loss = f.Number("loss")
	case ChannelGilbertElliott:
		c.Slot = span(f, "slot")
		c.GoodToBad, c.BadToGood = f.Number("good_to_bad"), f.Number("bad_to_good")
		c.LossGood, c.LossBad = f.Number("loss_good"), f.Number("loss_bad")
	case ChannelMarkov:
		c.Slot = span(f, "slot")
		c.Alpha, c.Beta = f.Number("alpha"), f.Number("beta")
	case ChannelOnOff:
		c.Loss, c.OnOff = f.Number("loss"), onOff(f)
	case ChannelHiddenMarkov:
		c.Hidden = hiddenMarkov(f)
	case ChannelOutages:
		c.Outages = outages(f)
	case ChannelTrace:
		c.Trace = pp.trace(f)
	case ChannelMobility:
		c.Mobility = mobility(f)
	case ChannelCombined:
		parts := f.Field("parts").Required()
		for _, v := range parts.List() {
			c.Parts = append(c.Parts, pp.channel(siteChannelKeys.Read(v).Mapping, simpleModels))
		}
		if parts.IsList() && len(c.Parts) < 2 {
			parts.Problem("expected at least two processes to combine, found %d", len(c.Parts))
		}
	}
	refuseOtherModels(m, c.Model)
	return c
}

// refuseOtherModels notes a problem for each parameter that is not the model's.
func refuseOtherModels(m yamldoc.Mapping, model ChannelModel) {
	of := channelModels.of(string(model))
	has := "none"
	if own := (variants{{keys: of}}).names(); len(own) > 0 {
		has = strings.Join(own, ", ")
	}
	for _, key := range channelModels.others(of) {
		if f := m.Field(key); f.Present() {
			f.Problem("a %s channel has no such parameter; its parameters: %s", model, has)
		}
	}
}

func onOff(m yamlschema.Fields) *OnOff {
	o := &OnOff{
		PeriodMin: span(m, "period_min"), PeriodMax: span(m, "period_max"),
		OnFactor: m.Number("on_factor"), OffFactor: m.Number("off_factor"),
	}
	if f := m.Field("period_max"); f.OK() && m.Field("period_min").OK() && o.PeriodMax < o.PeriodMin {
		f.Problem("%s is shorter than period_min, %s", o.PeriodMax, o.PeriodMin)
	}
	loss := m.Field("loss")
	if worst := loss.Float(0, 0, 1) * math.Max(o.OnFactor, o.OffFactor); m.OK() && worst > 1 {
		loss.Problem("%g times a factor of %g is more than 1", loss.Float(0, 0, 1), math.Max(o.OnFactor, o.OffFactor))
	}
	return o
}

const rowTolerance = 1e-6 // matrices are printed with five digits, rounded so that rows sum to one

func hiddenMarkov(m yamlschema.Fields) *HiddenMarkov {
	h := &HiddenMarkov{}
	tv := m.Field("transition").Required()
	rows := tv.List()
	good := len(rows) > 0
	if len(rows) > maxStates {
		tv.Problem("%d states, expected at most %d", len(rows), maxStates)
		return h
	}
	for _, rv := range rows {
		var row []float64
		sum := 0.0
		for _, x := range rv.List() {
			p := x.Float(0, 0, 1)
			row, sum = append(row, p), sum+p
		}
		switch {
		case !rv.IsList():
			good = false
		case len(row) != len(rows):
			rv.Problem("%d probabilities in a matrix of %d rows", len(row), len(rows))
			good = false
		case math.Abs(sum-1) > rowTolerance:
			rv.Problem("the row sums to %g, expected 1", sum)
			good = false
		}
		h.Transition = append(h.Transition, row)
	}
	ev := m.Field("bit_error_rates").Required()
	for _, x := range ev.List() {
		h.BitErrorRates = append(h.BitErrorRates, x.Float(0, 0, 1))
	}
	if ev.IsList() && len(rows) > 0 && len(h.BitErrorRates) != len(rows) {
		ev.Problem("%d rates for %d states", len(h.BitErrorRates), len(rows))
		good = false
	}
	if !good || !ev.IsList() || !m.OK() {
		return h
	}
	if _, err := h.Stationary(); err != nil {
		tv.Problem("%v", err)
		return h
	}
	if f := m.Field("target_bit_error_rate"); f.Present() {
		fitted, err := h.WithBER(f.Float(0, 0, 1))
		if err != nil {
			f.Problem("%v", err)
			return h
		}
		h = fitted
	}
	return h
}

func outages(m yamlschema.Fields) *Outages {
	o := &Outages{Loss: m.Number("loss")}
	times, period := m.Field("times"), m.Field("period")
	if times.Present() == period.Present() {
		m.Field("model").Problem("outages: expected either times or period and length")
		return o
	}
	if period.Present() {
		length := m.Field("length").Required()
		o.Period, o.Length, o.Offset = span(m, "period"), span(m, "length"), span(m, "offset")
		if period.OK() && length.OK() && o.Length > o.Period {
			length.Problem("%s is longer than the period, %s", o.Length, o.Period)
		}
		return o
	}
	for _, key := range []string{"length", "offset"} {
		if f := m.Field(key); f.Present() {
			f.Problem("goes with period, not with times")
		}
	}
	list := times.List()
	if times.IsList() && (len(list) == 0 || len(list) > maxOutages) {
		times.Problem("expected 1 to %d outages, found %d", maxOutages, len(list))
		return o
	}
	for _, v := range list {
		om := outageKeys.Read(v)
		x := Outage{Start: span(om, "start"), End: span(om, "end")}
		switch {
		case !v.IsMapping() || !om.Field("start").OK() || !om.Field("end").OK():
		case x.End <= x.Start:
			v.Problem("ends at %s, which is not after its start at %s", x.End, x.Start)
		case len(o.Times) > 0 && x.Start < o.Times[len(o.Times)-1].End:
			v.Problem("starts at %s, before the previous outage has ended", x.Start)
		}
		o.Times = append(o.Times, x)
	}
	return o
}

func (pp *profileParser) trace(m yamlschema.Fields) *Trace {
	f := m.Field("file").Required()
	name := f.String("")
	repeat := m.Bool("repeat")
	if name == "" {
		return &Trace{Step: time.Second, Loss: []float64{0}}
	}
	t := &Trace{Step: time.Second, Loss: []float64{0}}
	if pp.open == nil {
		f.Problem("a profile that was not read from a folder cannot refer to another file")
		return t
	}
	if strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".csv") {
		f.Problem("%q, expected the name of a .csv file in the profile's own folder", name)
		return t
	}
	text, err := pp.open(name)
	if err != nil {
		f.Problem("%v", err)
		return t
	}
	read, err := ParseTrace(filepath.Join(filepath.Dir(pp.file), name), text)
	if err != nil {
		var problems yamldoc.Problems
		if errors.As(err, &problems) {
			f.Include(problems)
		} else {
			f.Problem("%v", err)
		}
		return t
	}
	read.Repeat = repeat
	return read
}

func mobility(m yamlschema.Fields) *Mobility {
	mo := &Mobility{Step: span(m, "step")}
	byDistance, bySNR := false, false
	lv := m.Field("levels").Required()
	for _, v := range lv.List() {
		lm := levelKeys.Read(v)
		l := Level{RateBitsPerSecond: rate(lm, "rate"), Loss: lm.Number("loss")}
		up, snr := lm.Field("up_to"), lm.Field("min_snr")
		if v.IsMapping() && up.Present() == snr.Present() {
			v.Problem("expected either up_to or min_snr")
		}
		if up.Present() {
			byDistance = true
			l.UpToMetres = metres(lm, "up_to")
		} else {
			bySNR = true
			x := lm.Number("min_snr")
			l.MinSNR = &x
		}
		if n := len(mo.Levels); n > 0 && v.IsMapping() && m.OK() {
			before := mo.Levels[n-1]
			switch {
			case (before.MinSNR == nil) != (l.MinSNR == nil):
				v.Problem("levels by distance and levels by SNR do not mix")
			case l.MinSNR == nil && l.UpToMetres <= before.UpToMetres, l.MinSNR != nil && *l.MinSNR >= *before.MinSNR:
				v.Problem("expected levels from the best conditions to the worst")
			}
		}
		mo.Levels = append(mo.Levels, l)
	}
	if lv.IsList() && len(mo.Levels) == 0 {
		lv.Problem("expected at least one level")
	}
	if bySNR {
		for _, key := range []string{"exponent", "reference_snr", "reference"} {
			m.Field(key).Required()
		}
		mo.Exponent, mo.ReferenceSNR, mo.ReferenceMetres = m.Number("exponent"), m.Number("reference_snr"), metres(m, "reference")
		if mo.ReferenceMetres <= 0 {
			m.Field("reference").Problem("expected a distance of more than 0")
			mo.ReferenceMetres = 1
		}
	} else if byDistance {
		for _, key := range []string{"exponent", "reference", "reference_snr"} {
			if f := m.Field(key); f.Present() {
				f.Problem("levels by distance need no path loss")
			}
		}
	}
	return mo
}
