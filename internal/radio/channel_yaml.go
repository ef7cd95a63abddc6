package radio

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"linktrial/internal/yamldoc"
)

// modelKeys is a model and the keys of its figures.
type modelKeys struct {
	model ChannelModel
	keys  []string
}

// channelModels is every model and the keys of its figures, in the order in
// which messages list them.
var channelModels = []modelKeys{
	{ChannelPerfect, nil},
	{ChannelUniform, []string{"loss"}},
	{ChannelGilbertElliott, []string{"slot", "good_to_bad", "bad_to_good", "loss_good", "loss_bad"}},
	{ChannelMarkov, []string{"slot", "alpha", "beta"}},
	{ChannelOnOff, []string{"loss", "period_min", "period_max", "on_factor", "off_factor"}},
	{ChannelHiddenMarkov, []string{"transition", "bit_error_rates", "target_bit_error_rate"}},
	{ChannelOutages, []string{"times", "period", "length", "offset", "loss"}},
	{ChannelTrace, []string{"file", "repeat"}},
	{ChannelMobility, []string{"step", "exponent", "reference", "reference_snr", "levels"}},
	{ChannelCombined, []string{"parts"}},
}

// channelKeys is "model" and every figure of any model.
func channelKeys() []string {
	keys := []string{"model"}
	for _, m := range channelModels {
		for _, k := range m.keys {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

func modelNames(but ...ChannelModel) []string {
	var out []string
	for _, m := range channelModels {
		if !slices.Contains(but, m.model) {
			out = append(out, string(m.model))
		}
	}
	return out
}

// channel reads an error process. It accepts only the keys of its model, and
// requires those that have no default.
func (pp *profileParser) channel(m yamldoc.Mapping, but ...ChannelModel) Channel {
	c := Channel{Model: ChannelModel(m.Field("model").Required().OneOf("", modelNames(but...)...))}
	probability := func(key string, lo float64) float64 { return m.Field(key).Required().Float(lo, lo, 1) }
	slot := func() time.Duration {
		f := m.Field("slot")
		if !f.Present() {
			return 0
		}
		return atLeast(f, minSlot)
	}
	switch c.Model {
	case ChannelUniform:
		c.Loss = probability("loss", 0)
	case ChannelGilbertElliott:
		c.Slot = slot()
		c.GoodToBad = probability("good_to_bad", 0)
		c.BadToGood = m.Field("bad_to_good").Required().Float(1, 1e-9, 1)
		c.LossGood = m.Field("loss_good").Float(0, 0, 1)
		c.LossBad = m.Field("loss_bad").Float(1, 0, 1)
	case ChannelMarkov:
		c.Slot = slot()
		c.Alpha = probability("alpha", 0)
		c.Beta = m.Field("beta").Required().Float(1, 1e-9, 1)
	case ChannelOnOff:
		c.Loss, c.OnOff = probability("loss", 0), onOff(m)
	case ChannelHiddenMarkov:
		c.Hidden = hiddenMarkov(m)
	case ChannelOutages:
		c.Outages = outages(m)
	case ChannelTrace:
		c.Trace = pp.trace(m)
	case ChannelMobility:
		c.Mobility = mobility(m)
	case ChannelCombined:
		parts := m.Field("parts").Required()
		for _, v := range parts.List() {
			c.Parts = append(c.Parts, pp.channel(v.Mapping(channelKeys()...), ChannelCombined))
		}
		if parts.IsList() && len(c.Parts) < 2 {
			parts.Problem("expected at least two processes to combine, found %d", len(c.Parts))
		}
	case "":
		return c // the model's own problem is noted
	}
	refuseOtherModels(m, c.Model)
	return c
}

// refuseOtherModels notes a problem for each figure that is not the model's.
func refuseOtherModels(m yamldoc.Mapping, model ChannelModel) {
	i := slices.IndexFunc(channelModels, func(x modelKeys) bool { return x.model == model })
	keys := channelModels[i].keys
	has := "none"
	if len(keys) > 0 {
		has = strings.Join(keys, ", ")
	}
	for _, key := range channelKeys()[1:] {
		if f := m.Field(key); f.Present() && !slices.Contains(keys, key) {
			f.Problem("a %s channel has no such figure; its figures: %s", model, has)
		}
	}
}

// atLeast reads a duration of at most maxDelay.
func atLeast(v yamldoc.Value, lo time.Duration) time.Duration {
	d := delay(v)
	if d < lo {
		v.Problem("expected at least %s, found %s", lo, d)
		return lo
	}
	return d
}

func onOff(m yamldoc.Mapping) *OnOff {
	o := &OnOff{
		PeriodMin: atLeast(m.Field("period_min").Required(), 0), PeriodMax: atLeast(m.Field("period_max").Required(), 0),
		OnFactor: m.Field("on_factor").Float(1.5, 0, 1e6), OffFactor: m.Field("off_factor").Float(0.5, 0, 1e6),
	}
	if f := m.Field("period_min"); f.Present() && o.PeriodMin < minSlot {
		f.Problem("expected at least %s, found %s", minSlot, o.PeriodMin)
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

const (
	maxStates    = 16
	rowTolerance = 1e-6 // matrices are printed with five digits, rounded so that rows sum to one
)

func hiddenMarkov(m yamldoc.Mapping) *HiddenMarkov {
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

const maxOutages = 10_000

func outages(m yamldoc.Mapping) *Outages {
	o := &Outages{Loss: m.Field("loss").Float(1, 0, 1)}
	times, period := m.Field("times"), m.Field("period")
	if times.Present() == period.Present() {
		m.Field("model").Problem("outages: expected either times or period and length")
		return o
	}
	if period.Present() {
		o.Period = moment(period)
		o.Length = moment(m.Field("length").Required())
		o.Offset = moment(m.Field("offset"))
		switch {
		case o.Period < minSlot:
			period.Problem("expected at least %s, found %s", minSlot, o.Period)
			o.Period = minSlot
		case period.OK() && m.Field("length").OK() && o.Length > o.Period:
			m.Field("length").Problem("%s is longer than the period, %s", o.Length, o.Period)
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
		om := v.Mapping("start", "end")
		x := Outage{Start: moment(om.Field("start").Required()), End: moment(om.Field("end").Required())}
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

// maxMoment bounds moments within a trial.
const maxMoment = 7 * 24 * time.Hour

// moment reads a duration of at most maxMoment.
func moment(v yamldoc.Value) time.Duration {
	d := v.Duration(0)
	if d > maxMoment {
		v.Problem("expected at most %s, found %s", maxMoment, d)
		return maxMoment
	}
	return d
}

func (pp *profileParser) trace(m yamldoc.Mapping) *Trace {
	f := m.Field("file").Required()
	name := f.String("")
	repeat := m.Field("repeat").Bool(false)
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

func mobility(m yamldoc.Mapping) *Mobility {
	mo := &Mobility{Step: time.Second}
	if f := m.Field("step"); f.Present() {
		mo.Step = atLeast(f, 10*time.Millisecond)
	}
	byDistance, bySNR := false, false
	lv := m.Field("levels").Required()
	for _, v := range lv.List() {
		lm := v.Mapping("up_to", "min_snr", "rate", "loss")
		l := Level{RateBitsPerSecond: rate(lm.Field("rate").Required()), Loss: lm.Field("loss").Required().Float(0, 0, 1)}
		up, snr := lm.Field("up_to"), lm.Field("min_snr")
		if v.IsMapping() && up.Present() == snr.Present() {
			v.Problem("expected either up_to or min_snr")
		}
		if up.Present() {
			byDistance = true
			l.UpToMetres = metres(up, maxDistance)
		} else {
			bySNR = true
			x := snr.Float(0, -200, 200)
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
		mo.Exponent = m.Field("exponent").Required().Float(2, 1, 10)
		mo.ReferenceSNR = m.Field("reference_snr").Required().Float(0, -200, 200)
		mo.ReferenceMetres = metres(m.Field("reference").Required(), maxDistance)
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
