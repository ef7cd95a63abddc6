package radio

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"linktrial/internal/yamldoc"
)

// withChannel is the test profile with another channel and further sections.
func withChannel(channel, more string) string {
	return strings.Replace(profileText, "  channel: {model: uniform, loss: 0.1, source: s}\n", "  channel: {"+channel+", source: s}\n"+more, 1)
}

const tsai = "model: hidden-markov, transition: [[0.99911, 0, 0.00089], [0, 0.73644, 0.26356], [0.36258, 0.58510, 0.05232]], bit_error_rates: [0, 0, 1]"

func TestParseModels(t *testing.T) {
	if withChannel("", "") == profileText {
		t.Fatal("the test profile's channel was not found")
	}
	for _, c := range []struct {
		channel string
		want    func(Channel) bool
	}{
		{"model: markov, slot: 5ms, alpha: 0.01, beta: 0.1", func(c Channel) bool {
			return c.Slot == 5*time.Millisecond && c.Alpha == 0.01 && c.Beta == 0.1 && math.Abs(c.MeanLoss()-0.0909) < 1e-4
		}},
		{"model: on-off, loss: 0.5, period_min: 9ms, period_max: 11ms", func(c Channel) bool {
			return *c.OnOff == OnOff{9 * time.Millisecond, 11 * time.Millisecond, 1.5, 0.5} && c.MeanLoss() == 0.5
		}},
		{tsai + ", target_bit_error_rate: 1e-3", func(c Channel) bool {
			ber, err := c.Hidden.MeanBER()
			return err == nil && math.Abs(ber-1e-3) < 1e-12 && c.Hidden.BitErrorRates[0] == 0 && c.Hidden.BitErrorRates[2] < 0.5
		}},
		{"model: outages, period: 6s, length: 1s, offset: 5s", func(c Channel) bool {
			o := c.Outages
			return o.Period == 6*time.Second && o.Length == time.Second && o.Offset == 5*time.Second && o.Loss == 1 && math.Abs(c.MeanLoss()-1.0/6) < 1e-12
		}},
		{"model: outages, times: [{start: 50s, end: 50.1s}], loss: 0.5", func(c Channel) bool {
			return len(c.Outages.Times) == 1 && c.Outages.Times[0].End == 50100*time.Millisecond && c.Outages.Loss == 0.5
		}},
		{"model: combined, parts: [{model: uniform, loss: 0.5}, {model: uniform, loss: 0.5}]", func(c Channel) bool {
			return len(c.Parts) == 2 && c.MeanLoss() == 0.75
		}},
		{"model: mobility, levels: [{up_to: 100 m, rate: 2 Mbit/s, loss: 0}, {up_to: 300 m, rate: 1 Mbit/s, loss: 0.1}]", func(c Channel) bool {
			r, l := c.Mobility.Conditions(200)
			_, out := c.Mobility.Conditions(301)
			return r == 1e6 && l == 0.1 && out == 1
		}},
		{"model: mobility, exponent: 3, reference: 100 m, reference_snr: 30, levels: [{min_snr: 30, rate: 2 Mbit/s, loss: 0}, {min_snr: 0, rate: 1 Mbit/s, loss: 0.1}]", func(c Channel) bool {
			r, _ := c.Mobility.Conditions(100)
			far, _ := c.Mobility.Conditions(999) // 30 dB a decade: 0 dB at 1000 m
			_, out := c.Mobility.Conditions(1001)
			return r == 2e6 && far == 1e6 && out == 1
		}},
	} {
		p, err := ParseProfile("p", []byte(withChannel(c.channel, "")))
		if err != nil {
			t.Errorf("%s: %v", c.channel, err)
			continue
		}
		if got := p.Emulation.Channel; !c.want(got) {
			t.Errorf("%s: %+v", c.channel, got)
		}
	}
}

func TestParseLinkModels(t *testing.T) {
	text := withChannel(tsai+", target_bit_error_rate: 1e-3", `  reverse_channel: {model: perfect, source: s}
  framing: {frame: 50 B, header: 6 B, source: s}
  fec: {code: convolutional, rate: 1/2, residual_bit_error_rate: 1e-5, source: s}
  arq: {nack_timer: 10, persistence: 3, source: s}
`)
	text = strings.Replace(text, "  frame_overhead: {value: 20 B, source: s}\n", "", 1)
	p, err := ParseProfile("p", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	e := p.Emulation
	if *e.Framing != (Framing{50, 6}) || e.FEC.CodeRate != 0.5 || *e.ARQ != (ARQ{10, 3, true}) || e.Reverse.Model != ChannelPerfect {
		t.Errorf("%+v %+v %+v", e.Framing, e.FEC, e.ARQ)
	}
	topo, err := ParseTopology("t", []byte(topologyText))
	if err != nil {
		t.Fatal(err)
	}
	n, err := Resolve(p, topo)
	if err != nil {
		t.Fatal(err)
	}
	// relay–server has no site of its own: the code's residual rate, and error-free back.
	l := n.Links[1]
	ber, err := l.Toward(RoleServer).Hidden.MeanBER()
	if err != nil || math.Abs(ber-1e-5) > 1e-14 || l.Toward(RoleRelay).Model != ChannelPerfect {
		t.Errorf("after the code %g %v, back %s", ber, err, l.Toward(RoleRelay).Model)
	}
	if was, _ := p.Emulation.Channel.Hidden.MeanBER(); math.Abs(was-1e-3) > 1e-12 {
		t.Errorf("Resolve changed the profile: %g", was)
	}
	// A link whose A is on the server's side.
	topo.Links[1].A, topo.Links[1].B = topo.Links[1].B, topo.Links[1].A
	if n, err = Resolve(p, topo); err != nil || n.Links[1].Toward(RoleRelay).Model != ChannelPerfect || n.Links[1].Toward(RoleServer).Model != ChannelHiddenMarkov {
		t.Errorf("turned link: %+v %v", n.Links[1], err)
	}
	if count, bytes := e.Framing.Frames(400); count != 10 || bytes != 460 {
		t.Errorf("400 B in frames of 44 B: %d, %d B", count, bytes)
	}
}

func TestModelsRefused(t *testing.T) {
	overhead := "  frame_overhead: {value: 20 B, source: s}\n"
	for _, c := range []struct{ channel, more, want string }{
		{"model: markov, alpha: 0.1", "", "emulation.channel.beta is missing"},
		{"model: markov, alpha: 1.1, beta: 0.1", "", "expected a number from 0 to 1"},
		{"model: markov, alpha: 0.1, beta: 0.1, loss: 1", "", "a markov channel has no such parameter; its parameters: slot, alpha, beta"},
		{"model: on-off, loss: 0.7, period_min: 9ms, period_max: 11ms", "", "0.7 times a factor of 1.5 is more than 1"},
		{"model: on-off, loss: 0.5, period_min: 12ms, period_max: 11ms", "", "11ms is shorter than period_min, 12ms"},
		{"model: hidden-markov, transition: [[0.9, 0.2], [0.5, 0.5]], bit_error_rates: [0, 1]", "", "transition[0]: the row sums to 1.1, expected 1"},
		{"model: hidden-markov, transition: [[0.9, 0.1], [1]], bit_error_rates: [0, 1]", "", "transition[1]: 1 probabilities in a matrix of 2 rows"},
		{"model: hidden-markov, transition: [[0.9, 0.1], [0.5, 0.5]], bit_error_rates: [0]", "", "1 rates for 2 states"},
		{"model: hidden-markov, transition: [[1, 0], [0, 1]], bit_error_rates: [0, 1]", "", "some states never reach the others"},
		{tsai + ", target_bit_error_rate: 0.1", "", "the most that this chain gives is 0.00244"},
		{"model: outages", "", "expected either times or period and length"},
		{"model: outages, times: [{start: 2s, end: 1s}]", "", "ends at 1s, which is not after its start at 2s"},
		{"model: outages, times: [{start: 1s, end: 3s}, {start: 2s, end: 4s}]", "", "before the previous outage has ended"},
		{"model: outages, period: 1s, length: 2s", "", "2s is longer than the period, 1s"},
		{"model: trace, file: ../x.csv", "", "not read from a folder"},
		{"model: mobility, levels: [{up_to: 1 km, rate: 1 Mbit/s, loss: 0}, {up_to: 100 m, rate: 1 Mbit/s, loss: 0}]", "", "from the best conditions to the worst"},
		{"model: mobility, levels: [{min_snr: 3, rate: 1 Mbit/s, loss: 0}]", "", "channel.exponent is missing"},
		{"model: combined, parts: [{model: uniform, loss: 0.5}]", "", "at least two processes"},
		{"model: combined, parts: [{model: combined}, {model: perfect}]", "", `unknown "combined"`},
		{"model: perfect", "  framing: {frame: 6 B, header: 6 B, source: s}\n", "a frame of 6 B with a header of 6 B has no room for data"},
		{"model: perfect", "  framing: {frame: 60 B, header: 6 B, source: s}\n" + overhead, "overhead in the frames' headers"},
		{"model: perfect", "  arq: {nack_timer: 10, persistence: 3, source: s}\n", "framing must be given too"},
		{"model: perfect", "  fec: {code: reed-solomon, block: 255, data: 255, source: s}\n", "leave none to correct with"},
		{"model: perfect", "  fec: {code: convolutional, rate: 3/2, residual_bit_error_rate: 1e-5, source: s}\n", `found "3/2"`},
		{"model: perfect", "  fec: {code: convolutional, rate: 0/0, residual_bit_error_rate: 1e-5, source: s}\n", `found "0/0"`},
		{"model: perfect", "  fec: {code: convolutional, rate: 1/2, block: 7, residual_bit_error_rate: 1e-5, source: s}\n", "belongs to a reed-solomon code"},
		{"model: perfect", "  access: {tdma: {slot: 1s, owners: [client, relay, server]}, source: s}\n", "on a shared medium; this one is half-duplex"},
	} {
		_, err := ParseProfile("p", []byte(strings.Replace(withChannel(c.channel, c.more), overhead+overhead, overhead, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: got\n%v\nwant\n%s", c.channel, c.more, err, c.want)
		}
	}
	shared := strings.Replace(withChannel("model: perfect", "  access: {tdma: {slot: 5ms, guard: 1ms, owners: [client, server]}, source: s}\n"), "value: half-duplex", "value: shared", 1)
	if _, err := ParseProfile("p", []byte(shared)); err == nil || !strings.Contains(err.Error(), "does not fit into a slot of 5ms with a guard of 1ms") {
		t.Errorf("a slot shorter than a packet: %v", err)
	}
	p, err := ParseProfile("p", []byte(strings.Replace(shared, "5ms, guard", "50ms, guard", 1)))
	if err != nil {
		t.Fatal(err)
	}
	topo, _ := ParseTopology("t", []byte(topologyText))
	if _, err := Resolve(p, topo); err == nil || !strings.Contains(err.Error(), "gives the relay of topology here no TDMA slot") {
		t.Errorf("a relay without a slot: %v", err)
	}
	red := strings.Replace(profileText, "packets: 50", "red: {min: 20 KB, max: 90 KB, weight: 0.002, max_probability: 0.1}", 1)
	if _, err := ParseProfile("p", []byte(red)); err == nil || !strings.Contains(err.Error(), "more than the queue holds") {
		t.Errorf("thresholds beyond the queue: %v", err)
	}
}

// The closed form of a packet's loss agrees with drawing the bits, and with
// the loss of independent bits where there is one state.
func TestHiddenMarkovLoss(t *testing.T) {
	one := &HiddenMarkov{Transition: [][]float64{{1}}, BitErrorRates: []float64{1e-4}}
	if got, want := one.LossOf(1344), 1-math.Pow(1-1e-4, 1344); math.Abs(got-want) > 1e-12 {
		t.Errorf("independent bits: %g, want %g", got, want)
	}
	h := &HiddenMarkov{Transition: [][]float64{{0.99911, 0, 0.00089}, {0, 0.73644, 0.26356}, {0.36258, 0.58510, 0.05232}}, BitErrorRates: []float64{0, 0, 1}}
	pi, err := h.Stationary()
	if err != nil {
		t.Fatal(err)
	}
	for j := range pi {
		sum := 0.0
		for i := range pi {
			sum += pi[i] * h.Transition[i][j]
		}
		if math.Abs(sum-pi[j]) > 1e-12 {
			t.Errorf("state %d: %g becomes %g", j, pi[j], sum)
		}
	}
	const frames, bits = 40_000, 400
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(row []float64) int {
		x := r.Float64()
		for i, p := range row {
			if x -= p; x < 0 {
				return i
			}
		}
		return len(row) - 1
	}
	lost, state := 0, draw(pi)
	for range frames {
		bad := false
		for range bits {
			bad = bad || r.Float64() < h.BitErrorRates[state]
			state = draw(h.Transition[state])
		}
		if bad {
			lost++
		}
	}
	if got, want := float64(lost)/frames, h.LossOf(bits); math.Abs(got-want) > 0.015 {
		t.Errorf("drawn %g, closed form %g", got, want)
	}
}

const traceText = "time_s,rate_bit_s,delay_ms,loss\n# a remark\n0,2e6,20,0\n0.5,1e6,40,0.1\n1.0,0,40,1\n"

func TestParseTrace(t *testing.T) {
	tr, err := ParseTrace("t.csv", []byte(traceText))
	if err != nil {
		t.Fatal(err)
	}
	if tr.Step != 500*time.Millisecond || len(tr.Loss) != 3 || tr.RateBitsPerSecond[2] != 0 || tr.Delay[1] != 40*time.Millisecond {
		t.Errorf("%+v", tr)
	}
	for at, want := range map[time.Duration]int{-1: 0, 0: 0, 499 * time.Millisecond: 0, 500 * time.Millisecond: 1, time.Hour: 2} {
		if got := tr.At(at); got != want {
			t.Errorf("at %s: element %d, want %d", at, got, want)
		}
	}
	tr.Repeat = true
	if got := tr.At(1500 * time.Millisecond); got != 0 {
		t.Errorf("repeated: %d", got)
	}
	for _, c := range []struct{ text, want string }{
		{"", "the trace is empty"},
		{"time_s,loss\n", "the trace has no rows"},
		{"time_s,los\n0,0\n", `t.csv:1:8: unknown column "los" (did you mean "loss"?)`},
		{"loss\n0\n", "column time_s is missing"},
		{"time_s,loss,loss\n0,0,0\n", "column loss is given twice"},
		{"time_s,loss\n1,0\n", "the first time is 1s, expected 0"},
		{"time_s,loss\n0,0\n1,0\n3,0\n", "t.csv:4:1: a gap of 2s, from 1s to 3s, in a trace of 1s steps"},
		{"time_s,loss\n0,0\n1,0\n1.5,0\n", "a step of 500ms"},
		{"time_s,loss\n0,0\n2,0\n1,0\n", "time goes from 2s to 1s"},
		{"time_s,loss\n0,0\n0,0\n", "time goes from 0s to 0s"},
		{"time_s,loss,rate_bit_s\n0,0,-5\n", "t.csv:2:5: rate_bit_s: -5 is negative"},
		{"time_s,loss,rate_bit_s\n0,0,\n", "a gap: rate_bit_s is empty"},
		{"time_s,loss\n0,1.5\n", "loss: expected at most 1, found 1.5"},
		{"time_s,loss\n0,x\n", `expected a number, found "x"`},
		{"time_s,loss\n0,0,0\n", "wrong number of fields"},
		{"time_s,loss\n0,NaN\n-1,-1\n", "-1 is negative"},
	} {
		if _, err := ParseTrace("t.csv", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
	open := func(name string) ([]byte, error) {
		if name != "drive.csv" {
			return nil, errors.New("no such file")
		}
		return []byte(traceText), nil
	}
	p, err := ReadProfile("p", []byte(withChannel("model: trace, file: drive.csv, repeat: true", "")), open)
	if err != nil || !p.Emulation.Channel.Trace.Repeat || len(p.Emulation.Channel.Trace.Loss) != 3 {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"other.csv", "../drive.csv", "drive.txt"} {
		if _, err := ReadProfile("p", []byte(withChannel("model: trace, file: "+name, "")), open); err == nil {
			t.Errorf("a trace in %s was taken", name)
		}
	}
}

func FuzzParseTrace(f *testing.F) {
	f.Add([]byte(traceText))
	f.Add([]byte("time_s,loss\n0,0\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tr, err := ParseTrace("f", text)
		if err != nil {
			if ps := (yamldoc.Problems)(nil); !errors.As(err, &ps) {
				t.Fatalf("error %T", err)
			}
			return
		}
		if len(tr.Loss) == 0 || tr.Step < minSlot || len(tr.RateBitsPerSecond) != 0 && len(tr.RateBitsPerSecond) != len(tr.Loss) || len(tr.Delay) != 0 && len(tr.Delay) != len(tr.Loss) {
			t.Errorf("taken: %+v", tr)
		}
		for i, l := range tr.Loss {
			finite(t, l)
			if l < 0 || l > 1 || len(tr.RateBitsPerSecond) > 0 && !(tr.RateBitsPerSecond[i] >= 0) || len(tr.Delay) > 0 && tr.Delay[i] < 0 {
				t.Errorf("row %d of %+v", i, tr)
			}
		}
	})
}

func TestMobility(t *testing.T) {
	// The client walks 222.4 m north, away from the relay to its north … and past it.
	text := strings.Replace(topologyText, "elevation: 60 m}", "elevation: 60 m, moves: {speed: 10 m/s, waypoints: [{latitude: 39.002, longitude: -77}], return: true}}", 1)
	topo, err := ParseTopology("t", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseProfile("p", []byte(withChannel("model: mobility, levels: [{up_to: 60 m, rate: 2 Mbit/s, loss: 0}, {up_to: 1 km, rate: 1 Mbit/s, loss: 0.2}]", "")))
	if err != nil {
		t.Fatal(err)
	}
	n, err := Resolve(p, topo)
	if err != nil {
		t.Fatal(err)
	}
	tr := n.Links[0].Channel.Trace
	if n.Links[0].Channel.Model != ChannelTrace || !tr.Repeat || len(tr.Loss) != 45 { // 2 · 22.24 s
		t.Fatalf("%+v", n.Links[0].Channel)
	}
	// 111.2 m from the relay at first, beside it after 11.12 s, as far again at the turn.
	for at, want := range map[int]float64{0: 1e6, 11: 2e6, 16: 2e6, 18: 1e6, 22: 1e6, 33: 2e6, 44: 1e6} {
		if tr.RateBitsPerSecond[at] != want {
			t.Errorf("after %d s %g, want %g", at, tr.RateBitsPerSecond[at], want)
		}
	}
	if l := n.Links[1].Channel.Trace; len(l.Loss) != 1 || l.Repeat {
		t.Errorf("a link whose ends stand still: %+v", l)
	}
	for _, c := range []struct{ old, new, want string }{
		{"10 m/s", "10 mph", `found "10 mph"`},
		{"10 m/s", "0 m/s", `found "0 m/s"`},
		{"[{latitude: 39.002, longitude: -77}]", "[]", "expected 1 to 1000 waypoints"},
		{"latitude: 39.002, longitude: -77}", "latitude: 39.002}", "longitude is missing"},
	} {
		if _, err := ParseTopology("t", []byte(strings.Replace(text, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
	topo.Station(RoleClient).Moves.SpeedMetresPerSecond = 0.01
	if _, err := Resolve(p, topo); err == nil || !strings.Contains(err.Error(), "more than 20000 steps") {
		t.Errorf("a way that takes hours: %v", err)
	}
}

func TestVary(t *testing.T) {
	p, err := Vary("p", []byte(profileText), []Change{{"rate", "16 kbit/s"}, {"channel.loss", "0.25"}, {"queue.packets", "7"}, {"sites.here.rate", "3 Mbit/s"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := ParseProfile("p", []byte(profileText))
	if err != nil {
		t.Fatal(err)
	}
	if e := p.Emulation; e.RateBitsPerSecond != 16e3 || e.Channel.Loss != 0.25 || e.Queue.Packets != 7 || e.Sites["here"].RateBitsPerSecond != 3e6 || p.Hash != plain.Hash {
		t.Errorf("%+v", e)
	}
	for _, c := range []struct {
		change Change
		want   string
	}{
		{Change{"arq.persistence", "3"}, "the profile's emulation has no arq; there are medium, rate"},
		{Change{"channel", "3"}, "channel: is not a single value; it has model, loss"},
		{Change{"channel.alpha", "3"}, "a uniform channel has no such parameter"},
		{Change{"channel.los", "3"}, `unknown key "los"`},
		{Change{"rate", "fast"}, "expected a rate such as"},
		{Change{"channel.parts[0].loss", "3"}, "no channel.parts"},
		{Change{"channel.parts[x].loss", "3"}, "expected a name and an index"},
	} {
		if _, err := Vary("p", []byte(profileText), []Change{c.change}, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %s", c.change, err, c.want)
		}
	}
	combined := withChannel("model: combined, parts: [{model: uniform, loss: 0.5}, {model: outages, period: 6s, length: 1s}]", "")
	p, err = Vary("p", []byte(combined), []Change{{"channel.parts[1].length", "2s"}}, nil)
	if err != nil || p.Emulation.Channel.Parts[1].Outages.Length != 2*time.Second {
		t.Errorf("%v", err)
	}
}

// A parameter that the file shares by an alias changes where it is named alone.
func TestVaryAlias(t *testing.T) {
	text := strings.Replace(profileText, "  channel: {model: uniform, loss: 0.1, source: s}", "  channel: &c {model: uniform, loss: 0.1, source: s}\n  reverse_channel: *c", 1)
	p, err := Vary("p", []byte(text), []Change{{"reverse_channel.loss", "0.5"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Emulation.Channel.Loss != 0.1 || p.Emulation.Reverse.Loss != 0.5 {
		t.Errorf("there %g, back %g", p.Emulation.Channel.Loss, p.Emulation.Reverse.Loss)
	}
	if _, err := Vary("p", []byte("emulation: &e {rate: *e}"), []Change{{"rate", "1"}}, nil); err == nil {
		t.Error("a document that refers to itself was taken")
	}
}

// FuzzVary: a change is refused, or what comes out passes as a file of its own would.
func FuzzVary(f *testing.F) {
	for _, c := range []Change{{"rate", "16 kbit/s"}, {"channel.loss", "0.25"}, {"queue.packets", "7"}, {"sites.there.channel.slot", "1ms"}, {"channel.parts[0].loss", "x"}, {"[", "]"}, {"..", "&a"}} {
		f.Add(c.Path, c.Value)
	}
	f.Fuzz(func(t *testing.T, path, value string) {
		p, err := Vary("f", []byte(profileText), []Change{{path, value}}, nil)
		if err != nil {
			return
		}
		if e := p.Emulation; e == nil || e.RateBitsPerSecond < 1 || e.MTUBytes < minMTU || e.ProcessingDelay < 0 || !(e.Channel.MeanLoss() >= 0 && e.Channel.MeanLoss() <= 1) {
			t.Errorf("%s: %s gave %+v", path, value, e)
		}
	})
}
