package channel

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"linktrial/internal/radio"
)

// tsai is the chain of dantas-2011, equation (6), with errors in its third state.
func tsai(t testing.TB, ber float64) *radio.HiddenMarkov {
	t.Helper()
	h := &radio.HiddenMarkov{
		Transition:    [][]float64{{0.99911, 0, 0.00089}, {0, 0.73644, 0.26356}, {0.36258, 0.58510, 0.05232}},
		BitErrorRates: []float64{0, 0, 1},
	}
	h, err := h.WithBER(ber)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// models is a channel of every kind, with which every process must keep the
// rules of Process.
func models(t testing.TB) map[string]radio.Channel {
	trace := &radio.Trace{Step: 70 * time.Millisecond, Repeat: true, Loss: []float64{0, 0.3, 1, 0.8, 0.1}}
	periodic := &radio.Outages{Period: 170 * time.Millisecond, Length: 33 * time.Millisecond, Offset: 50 * time.Millisecond, Loss: 1}
	return map[string]radio.Channel{
		"uniform":         {Model: radio.ChannelUniform, Loss: 0.3},
		"gilbert-elliott": {Model: radio.ChannelGilbertElliott, GoodToBad: 0.1, BadToGood: 0.2, LossGood: 0.05, LossBad: 0.8, Slot: 33 * time.Millisecond},
		"markov":          {Model: radio.ChannelMarkov, Alpha: 0.1, Beta: 0.3},
		"markov, slots":   {Model: radio.ChannelMarkov, Alpha: 0.1, Beta: 0.3, Slot: 4 * time.Millisecond},
		"on-off":          {Model: radio.ChannelOnOff, Loss: 0.4, OnOff: &radio.OnOff{PeriodMin: 9 * time.Millisecond, PeriodMax: 41 * time.Millisecond, OnFactor: 1.5, OffFactor: 0.5}},
		"on-off, certain": {Model: radio.ChannelOnOff, Loss: 0.5, OnOff: &radio.OnOff{PeriodMin: 20 * time.Millisecond, PeriodMax: 25 * time.Millisecond, OnFactor: 2, OffFactor: 0}},
		"hidden-markov":   {Model: radio.ChannelHiddenMarkov, Hidden: tsai(t, 1e-3)},
		"one state":       {Model: radio.ChannelHiddenMarkov, Hidden: &radio.HiddenMarkov{Transition: [][]float64{{1}}, BitErrorRates: []float64{5e-4}}},
		"outages":         {Model: radio.ChannelOutages, Outages: periodic},
		"outages, half":   {Model: radio.ChannelOutages, Outages: &radio.Outages{Times: []radio.Outage{{Start: 0, End: 20 * time.Millisecond}, {Start: 22 * time.Millisecond, End: 23 * time.Millisecond}, {Start: time.Second, End: 5 * time.Second}}, Loss: 0.5}},
		"trace":           {Model: radio.ChannelTrace, Trace: trace},
		"combined": {Model: radio.ChannelCombined, Parts: []radio.Channel{
			{Model: radio.ChannelHiddenMarkov, Hidden: tsai(t, 1e-4)}, {Model: radio.ChannelOutages, Outages: periodic},
			{Model: radio.ChannelUniform, Loss: 0.1}, {Model: radio.ChannelTrace, Trace: trace},
			{Model: radio.ChannelGilbertElliott, GoodToBad: 0.1, BadToGood: 0.2, LossGood: 0, LossBad: 1, Slot: 3 * time.Millisecond},
		}},
	}
}

// Every sender meets the same fate at the same moment, as it was foreseen.
func TestEveryModelIsOneRealisation(t *testing.T) {
	for name, c := range models(t) {
		dense, sparse, seer, other := process(t, c, 1), process(t, c, 1), process(t, c, 1), process(t, c, 2)
		differ, lost := 0, 0
		for i := range 20_000 {
			at := time.Duration(i) * packet
			want := dense.Lost(at, at+packet)
			if want {
				lost++
			}
			if other.Lost(at, at+packet) != want {
				differ++
			}
			ahead := seer.Clone() // goes on while the other stays
			ahead.Foresee(at+time.Second, at+time.Second+packet, 0)
			if got, until := seer.Foresee(at, at+packet, 0); got != want || until <= at {
				t.Fatalf("%s at %s: foreseen %v until %s, met %v", name, at, got, until, want)
			}
			if i%97 == 0 && sparse.Lost(at, at+packet) != want {
				t.Fatalf("%s at %s: a sender after a silence meets another fate", name, at)
			}
		}
		seedless := c.Model == radio.ChannelOutages && c.Outages.Loss == 1
		if lost == 0 || lost == 20_000 || (differ == 0) != seedless {
			t.Errorf("%s: %d lost, %d differ from another seed's", name, lost, differ)
		}
	}
}

// What Foresee says of a moment it says of all moments until the one it names,
// and State changes when it says.
func TestEveryForeseenAnswerHolds(t *testing.T) {
	for name, c := range models(t) {
		for _, air := range []time.Duration{packet, packet / 7} {
			seer, check, walk, look := process(t, c, 9), process(t, c, 9), process(t, c, 9), process(t, c, 9)
			for at := time.Duration(0); at < 2*time.Second; {
				lost, until := seer.Foresee(at, at+air, 0)
				if until <= at {
					t.Fatalf("%s: the answer at %s holds until %s", name, at, until)
				}
				for probe := at; probe < min(until, 3*time.Second); probe += min(max(1, until-1-probe), 300*time.Microsecond) {
					if got, _ := check.Foresee(probe, probe+air, 0); got != lost {
						t.Fatalf("%s: from %s until %s foreseen %v, at %s %v", name, at, until, lost, probe, got)
					}
					if until-1-probe <= 0 {
						break
					}
				}
				at = until
			}
			for at := time.Duration(0); at < time.Second; {
				s, until := walk.State(at)
				for probe := at; probe < min(until, time.Second); probe += 250 * time.Microsecond {
					if got, _ := look.State(probe); got != s {
						t.Fatalf("%s: state %+v from %s until %s, at %s %+v", name, s, at, until, probe, got)
					}
				}
				at = until
			}
		}
	}
}

// The share of what is lost is the closed form's of internal/radio.
func TestLongRunLoss(t *testing.T) {
	const n = 200_000
	for name, c := range models(t) {
		if name == "outages, half" || name == "markov, slots" || name == "combined" {
			continue // no long run; several slots in a packet; parts of which some are no long run
		}
		p := process(t, c, 3)
		var x []float64
		for i := range n {
			at := time.Duration(i) * packet
			v := 0.0
			if p.Lost(at, at+packet) {
				v = 1
			}
			x = append(x, v)
		}
		want, tolerance := c.LossOf(int(packet/bit)/8), 0.01
		if c.Model == radio.ChannelOutages { // overlap counts, not the start alone
			want, tolerance = (c.Outages.Length+packet).Seconds()/c.Outages.Period.Seconds(), 0.02
		}
		if got := mean(x); math.Abs(got-want) > tolerance {
			t.Errorf("%s: loss %g, closed form %g", name, got, want)
		}
	}
}

func TestMarkovClosedForms(t *testing.T) {
	const n = 1_500_000
	for _, tc := range []struct{ alpha, beta float64 }{{0.001, 0.01}, {0.01, 0.1}, {0.1, 1}, {0.428, 1}, {0.0428, 0.1}, {0.1, 0.1}} { // decola-2006, sections 6.1 to 6.3
		x := fates(process(t, radio.Channel{Model: radio.ChannelMarkov, Alpha: tc.alpha, Beta: tc.beta}, 5), n)
		loss, rho := tc.alpha/(tc.alpha+tc.beta), 1-tc.alpha-tc.beta
		sd := math.Sqrt(loss * (1 - loss) / n * (1 + rho) / (1 - rho))
		if got := mean(x); math.Abs(got-loss) > 4*sd {
			t.Errorf("%+v: loss %g, expected %g ± %g", tc, got, loss, 4*sd)
		}
		burst, gap := runs(x)
		for _, r := range []struct {
			name  string
			got   []float64
			leave float64
		}{{"burst", burst, tc.beta}, {"gap", gap, tc.alpha}} {
			sd := math.Sqrt(1-r.leave) / r.leave / math.Sqrt(float64(len(r.got)))
			if got, want := mean(r.got), 1/r.leave; math.Abs(got-want) > 4*sd+1e-9 {
				t.Errorf("%+v: mean %s %g slots, expected %g ± %g", tc, r.name, got, want, 4*sd)
			}
		}
		for lag := 1; lag <= 5; lag += 2 {
			if got, want := autocorrelation(x, lag), math.Pow(rho, float64(lag)); math.Abs(got-want) > 4/math.Sqrt(float64(len(burst))) {
				t.Errorf("%+v lag %d: correlation %g, expected %g", tc, lag, got, want)
			}
		}
	}
	// With a stated slot a packet needs k good slots in a row: (1−π)·(1−α)^(k−1).
	const alpha, beta, k = 0.05, 0.2, 10
	x := fates(process(t, radio.Channel{Model: radio.ChannelMarkov, Alpha: alpha, Beta: beta, Slot: packet / k}, 5), 300_000)
	if got, want := 1-mean(x), beta/(alpha+beta)*math.Pow(1-alpha, k-1); math.Abs(got-want) > 0.006 {
		t.Errorf("packets over %d slots: %g get through, expected %g", k, got, want)
	}
}

// runs is the lengths of the complete runs of ones and of zeros.
func runs(x []float64) (ones, zeros []float64) {
	for i := 1; i < len(x); {
		j := i
		for j < len(x) && x[j] == x[i] {
			j++
		}
		if x[i-1] != x[i] && j < len(x) {
			if x[i] == 1 {
				ones = append(ones, float64(j-i))
			} else {
				zeros = append(zeros, float64(j-i))
			}
		}
		i = j
	}
	return ones, zeros
}

func TestOnOffPeriods(t *testing.T) {
	c := radio.Channel{Model: radio.ChannelOnOff, Loss: 0.2, OnOff: &radio.OnOff{PeriodMin: 9 * time.Millisecond, PeriodMax: 11 * time.Millisecond, OnFactor: 1.5, OffFactor: 0.5}}
	p := process(t, c, 3)
	var lengths []float64
	on, last := 0.0, State{}
	for at := time.Duration(0); at < 1000*time.Second; {
		s, until := p.State(at)
		length := until - at
		if at > 0 && until%p.(*onOff).blockLength != 0 {
			if length < 9*time.Millisecond || length > 11*time.Millisecond {
				t.Fatalf("a period of %s", length)
			}
			if s == last && at%p.(*onOff).blockLength != 0 {
				t.Fatalf("two periods of one kind at %s", at)
			}
			lengths = append(lengths, length.Seconds()*1e3)
		}
		if math.Abs(s.Loss-0.3) < 1e-9 {
			on += length.Seconds()
		} else if math.Abs(s.Loss-0.1) > 1e-9 {
			t.Fatalf("loss %g", s.Loss)
		}
		at, last = until, s
	}
	if m := mean(lengths); math.Abs(m-10) > 4*math.Sqrt(4.0/12/float64(len(lengths))) {
		t.Errorf("periods of %g ms in the mean, expected 10", m)
	}
	if math.Abs(on/1000-0.5) > 0.001 {
		t.Errorf("%g of the time on", on/1000)
	}
	first := 0.0
	for seed := range uint64(4000) {
		if s, _ := process(t, c, seed).State(0); s.Loss > 0.2 {
			first++
		}
	}
	if math.Abs(first/4000-0.5) > 0.035 {
		t.Errorf("%g of the seeds begin with the on kind", first/4000)
	}
}

// errorsIn lists the wrong bits of a stretch.
func errorsIn(h *hidden, from, to int64) (out []int64) {
	c := h.at
	for {
		b, ok := h.seek(&c, from, to)
		if !ok {
			return out
		}
		out, from = append(out, b), b+1
	}
}

func TestHiddenMarkovClosedForms(t *testing.T) {
	const bits = 6 << 20 // several blocks
	for _, ber := range []float64{1e-3, 1e-4} {
		m := tsai(t, ber)
		wrong := errorsIn(process(t, radio.Channel{Model: radio.ChannelHiddenMarkov, Hidden: m}, 8).(*hidden), 0, bits)
		if got := float64(len(wrong)) / bits; math.Abs(got/ber-1) > 0.12 {
			t.Errorf("bit error rate %g, expected %g", got, ber)
		}
		// P(wrong bit k after a wrong one) = (e·P^k·e) weighted by the long run.
		pi, err := m.Stationary()
		if err != nil {
			t.Fatal(err)
		}
		is := map[int64]bool{}
		for _, b := range wrong {
			is[b] = true
		}
		v := make([]float64, 3)
		for i := range v {
			v[i] = pi[i] * m.BitErrorRates[i] / ber
		}
		for k := 1; k <= 12; k++ {
			w := make([]float64, 3)
			for i := range v {
				for j := range w {
					w[j] += v[i] * m.Transition[i][j]
				}
			}
			v = w
			want, got := 0.0, 0.0
			for j := range v {
				want += v[j] * m.BitErrorRates[j]
			}
			for _, b := range wrong {
				if is[b+int64(k)] {
					got++
				}
			}
			got /= float64(len(wrong))
			if math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/float64(len(wrong)))+0.002 {
				t.Errorf("BER %g: a wrong bit %d after a wrong one with %g, expected %g", ber, k, got, want)
			}
		}
	}
	// Independent bits: gaps are geometric, so losses of frames are (1−e)^n.
	one := radio.Channel{Model: radio.ChannelHiddenMarkov, Hidden: &radio.HiddenMarkov{Transition: [][]float64{{1}}, BitErrorRates: []float64{1e-3}}}
	if got, want := mean(fates(process(t, one, 8), 100_000)), 1-math.Pow(1-1e-3, 1000); math.Abs(got-want) > 0.007 {
		t.Errorf("independent bits: loss %g, expected %g", got, want)
	}
	all := radio.Channel{Model: radio.ChannelHiddenMarkov, Hidden: &radio.HiddenMarkov{Transition: [][]float64{{0, 1}, {1, 0}}, BitErrorRates: []float64{1, 0}}}
	if got := errorsIn(process(t, all, 8).(*hidden), 0, 1000); len(got) != 500 || got[1] != got[0]+2 {
		t.Errorf("states in turn: %d wrong bits", len(got))
	}
}

// The code reads what bounded-distance decoding of the very wrong bits reads.
func TestReedSolomonAgainstCounting(t *testing.T) {
	for _, code := range []radio.FEC{
		{Code: radio.FECReedSolomon, BlockSymbols: 255, DataSymbols: 223, InterleavingDepth: 1},
		{Code: radio.FECReedSolomon, BlockSymbols: 15, DataSymbols: 9, InterleavingDepth: 1},
		{Code: radio.FECReedSolomon, BlockSymbols: 15, DataSymbols: 9, InterleavingDepth: 4},
	} {
		m := &radio.HiddenMarkov{Transition: [][]float64{{0.999, 0.001}, {0.02, 0.98}}, BitErrorRates: []float64{0.001, 0.5}}
		p := Params{Packet: packet, Bit: float64(bit), Code: &code}
		c := radio.Channel{Model: radio.ChannelHiddenMarkov, Hidden: m}
		made, err := New(c, p, 3)
		if err != nil {
			t.Fatal(err)
		}
		h := made.(*hidden)
		r := rand.New(rand.NewPCG(1, 1))
		good := 0
		for i := range 3000 {
			first, n := int64(i)*2000, int64(8*(1+r.IntN(120)))
			if code.BlockSymbols == 255 {
				n = int64(8 * (1 + r.IntN(600)))
			}
			h.advance(&h.at, first)
			wrong := map[int]bool{}
			for _, b := range errorsIn(h, first, first+n) {
				wrong[int(b-first)/8] = true
			}
			want := true
			per := code.InterleavingDepth * code.BlockSymbols
			for base := 0; base < int(n/8); base += per {
				size := min(per, int(n/8)-base)
				blocks := (size + code.BlockSymbols - 1) / code.BlockSymbols
				for k := range blocks {
					length, bad := 0, 0
					for s := k; s < size; s += blocks {
						length++
						if wrong[base+s] {
							bad++
						}
					}
					want = want && bad <= length*(code.BlockSymbols-code.DataSymbols)/2/code.BlockSymbols
				}
			}
			if want {
				good++
			}
			at := time.Duration(first) * bit
			if got := !h.Lost(at, at+time.Duration(n)*bit); got != want {
				t.Fatalf("%+v: transmission %d of %d bits read %v, want %v", code, i, n, got, want)
			}
		}
		if good == 0 || good == 3000 {
			t.Errorf("%+v: %d of 3000 read", code, good)
		}
	}
}

// RS(255,223) reads a block with 16 wrong symbols and not one with 17.
func TestCorrectingPower(t *testing.T) {
	for _, tc := range []struct {
		cycle, wrong int // the first bit of one symbol in a cycle is wrong
		read         bool
	}{{16, 16, true}, {15, 17, false}} {
		n := tc.cycle * 8
		m := &radio.HiddenMarkov{BitErrorRates: make([]float64, n)}
		for i := range n {
			row := make([]float64, n)
			row[(i+1)%n] = 1
			m.Transition = append(m.Transition, row)
		}
		m.BitErrorRates[0] = 1
		h := newHidden(m, Params{Packet: packet, Bit: 1000, Code: &radio.FEC{BlockSymbols: 255, DataSymbols: 223}}, 1)
		const bits = 255 * 8
		first, _ := h.seek(&h.at, 0, bits)
		if got := len(errorsIn(h, first, first+bits)); got != tc.wrong {
			t.Fatalf("%d wrong symbols, expected %d", got, tc.wrong)
		}
		c := h.at
		if got := h.code.readable(h, &c, first, bits); got != tc.read {
			t.Errorf("%d wrong symbols of 255: read %v", tc.wrong, got)
		}
	}
}

func TestOutagesAndTraceByTheClock(t *testing.T) {
	s := time.Second
	o := process(t, radio.Channel{Model: radio.ChannelOutages, Outages: &radio.Outages{Times: []radio.Outage{{Start: 10 * s, End: 12 * s}, {Start: 20 * s, End: 21 * s}}, Loss: 1}}, 1)
	for _, tc := range []struct {
		start, end time.Duration
		lost       bool
		until      time.Duration
	}{
		{0, 5 * s, false, 5*s + 1}, {5 * s, 10 * s, false, 5*s + 1}, {5*s + 1, 10*s + 1, true, 12 * s}, {11 * s, 12 * s, true, 12 * s},
		{11 * s, 20*s + 1, true, 21 * s}, {12 * s, 20 * s, false, 12*s + 1}, {20 * s, 20*s + 1, true, 21 * s}, {21 * s, 22 * s, false, Forever},
	} {
		if got, until := o.Foresee(tc.start, tc.end, 0); got != tc.lost || until != tc.until {
			t.Errorf("%s to %s: lost %v until %s, expected %v until %s", tc.start, tc.end, got, until, tc.lost, tc.until)
		}
		if got := o.Lost(tc.start, tc.end); got != tc.lost {
			t.Errorf("%s to %s: lost %v", tc.start, tc.end, got)
		}
	}
	p := process(t, radio.Channel{Model: radio.ChannelOutages, Outages: &radio.Outages{Period: 6 * s, Length: s, Offset: 5 * s, Loss: 1}}, 1) // qaddoura-2006
	for at, want := range map[time.Duration]bool{0: false, 4 * s: false} {
		if got := p.Lost(at, at+s); got != want {
			t.Errorf("periodic, at %s: %v", at, got)
		}
	}
	for at := 5 * s; at < 60*s; at += s {
		if got, want := p.Lost(at, at+1), (at/s-5)%6 == 0; got != want {
			t.Errorf("periodic, at %s: %v", at, got)
		}
	}
}

func TestCourse(t *testing.T) {
	s := time.Second
	own := Conditions{Rate: 1000, Delay: s}
	if NewCourse(radio.Channel{Model: radio.ChannelUniform}, own) != nil {
		t.Error("a channel without a trace has a course")
	}
	a := &radio.Trace{Step: s, Loss: []float64{0, 0, 0}, RateBitsPerSecond: []float64{500, 0, 700}, Delay: []time.Duration{1, 2, 3}}
	b := &radio.Trace{Step: 2 * s, Repeat: true, Loss: []float64{0, 0}, RateBitsPerSecond: []float64{600, 2000}}
	d := &radio.Trace{Step: 5 * s, Loss: []float64{0}, Delay: []time.Duration{10}}
	c := NewCourse(radio.Channel{Model: radio.ChannelCombined, Parts: []radio.Channel{
		{Model: radio.ChannelTrace, Trace: a}, {Model: radio.ChannelUniform}, {Model: radio.ChannelTrace, Trace: b}, {Model: radio.ChannelTrace, Trace: d}}}, own)
	for _, tc := range []struct {
		at    time.Duration
		want  Conditions
		until time.Duration
	}{
		{0, Conditions{500, 11}, s}, {s, Conditions{0, 12}, 2 * s}, {2 * s, Conditions{700, 13}, 4 * s}, {5 * s, Conditions{600, 13}, 6 * s}, {7 * s, Conditions{700, 13}, 8 * s},
	} {
		if got, until := c.At(tc.at); got != tc.want || until != tc.until {
			t.Errorf("at %s: %+v until %s, expected %+v until %s", tc.at, got, until, tc.want, tc.until)
		}
	}
	if slow, fast, near := c.Extremes(); slow != 500 || fast != 700 || near != 11 {
		t.Errorf("from %g to %g, %s", slow, fast, near)
	}
	lone := NewCourse(radio.Channel{Model: radio.ChannelTrace, Trace: d}, own)
	if got, until := lone.At(0); got != (Conditions{1000, 10}) || until != Forever {
		t.Errorf("delay alone: %+v until %s", got, until)
	}
	if slow, fast, near := lone.Extremes(); slow != 1000 || fast != 1000 || near != 10 {
		t.Errorf("delay alone: from %g to %g, %s", slow, fast, near)
	}
}

func TestModelsRefused(t *testing.T) {
	bad := func(c radio.Channel, want ...string) {
		t.Helper()
		err := Check(c)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%+v: %v, expected %q", c, err, w)
			}
		}
	}
	for _, m := range []radio.ChannelModel{radio.ChannelOnOff, radio.ChannelHiddenMarkov, radio.ChannelOutages, radio.ChannelTrace} {
		bad(radio.Channel{Model: m}, "without its parameters")
	}
	bad(radio.Channel{Model: radio.ChannelMarkov, Alpha: 2, Beta: -1}, "alpha", "beta")
	bad(radio.Channel{Model: radio.ChannelMobility}, "profiles only")
	bad(radio.Channel{Model: radio.ChannelCombined}, "without parts")
	bad(radio.Channel{Model: radio.ChannelCombined, Parts: []radio.Channel{{Model: radio.ChannelCombined}}}, "part of another")
	bad(radio.Channel{Model: radio.ChannelOnOff, Loss: 0.8, OnOff: &radio.OnOff{PeriodMin: 5, PeriodMax: 4, OnFactor: 2}}, "one kind", "periods")
	h := func(rates []float64, rows ...[]float64) radio.Channel {
		return radio.Channel{Model: radio.ChannelHiddenMarkov, Hidden: &radio.HiddenMarkov{Transition: rows, BitErrorRates: rates}}
	}
	bad(h(nil), "0 rows")
	bad(h([]float64{2}, []float64{0.5}), "bit error rate", "sum to 0.5")
	bad(h([]float64{0, 0}, []float64{1, 0}, []float64{0, 1}), "never reach")
	bad(radio.Channel{Model: radio.ChannelOutages, Outages: &radio.Outages{Loss: 2}}, "loss", "expected one of them")
	bad(radio.Channel{Model: radio.ChannelOutages, Outages: &radio.Outages{Period: time.Second, Length: time.Minute}}, "longer")
	bad(radio.Channel{Model: radio.ChannelOutages, Outages: &radio.Outages{Times: []radio.Outage{{Start: 5, End: 9}, {Start: 8, End: 10}}}}, "ascending")
	bad(radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Step: time.Second, Loss: []float64{0}, Delay: []time.Duration{1, 2}}}, "2 delays")
	bad(radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Loss: []float64{2}}}, "steps of at least", "step 0: loss")
	bad(radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Step: time.Second, Loss: []float64{0}, RateBitsPerSecond: []float64{math.NaN()}}}, "step 0: rate")
	bad(radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Step: time.Second, Loss: []float64{0}, Delay: []time.Duration{-1}}}, "step 0: delay")
	if _, err := New(h([]float64{0}, []float64{1}), Params{Packet: packet}, 1); err == nil {
		t.Error("bit errors without the length of a bit were accepted")
	}
}

func TestNoProcessAllocates(t *testing.T) {
	for name, c := range models(t) {
		p, at := process(t, c, 1), time.Duration(0)
		if a := testing.AllocsPerRun(2000, func() { p.Lost(at, at+packet); p.Foresee(at, at+packet, 0); at += packet }); a != 0 {
			t.Errorf("%s: %g allocations a packet", name, a)
		}
	}
}

func BenchmarkModels(b *testing.B) {
	for name, c := range models(b) {
		b.Run(name, func(b *testing.B) {
			p := process(b, c, 1)
			for i := range b.N {
				at := time.Duration(i) * packet
				p.Lost(at, at+packet)
			}
		})
	}
}
