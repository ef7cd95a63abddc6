package radio

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/internal/yamldoc"
)

const profileText = `name: test
title: Test radio
manufacturer: M
model: "1"
waveform: W
figures:
  - {name: frequency, value: 402.5 MHz, source: table 1}
  - {name: delay, value: unknown, unit: ms, source: not given}
  - {name: power, value: -3 dBm, source: guessed, uncertain: true}
emulation:
  medium: {value: half-duplex, source: s}
  rate: {value: 2 Mbit/s, source: s}
  processing_delay: {value: 5ms, source: s}
  turnaround: {value: 1ms, source: s}
  frame_overhead: {value: 20 B, source: s}
  mtu: {value: 1500 B, source: s}
  queue: {bytes: 64 KiB, packets: 50, source: s}
  channel: {model: uniform, loss: 0.1, source: s}
  sites:
    here: {rate: 1 Mbit/s, source: s}
    there: {channel: {model: gilbert-elliott, slot: 10ms, good_to_bad: 0.1, bad_to_good: 0.3, loss_bad: 0.8}, source: s}
`

const topologyText = `name: here
title: Here
source: s
stations:
  - {name: a, role: client, latitude: 39, longitude: -77, elevation: 60 m}
  - {name: b, role: relay, latitude: 39.001, longitude: -77, elevation: unknown}
  - {name: c, role: server, latitude: 39.002, longitude: -77, elevation: 200 ft}
links:
  - {between: [client, relay], distance: 111.2 m, source: s}
  - {between: [relay, server], source: computed from the positions}
`

func TestParseProfile(t *testing.T) {
	p, err := ParseProfile("p.yaml", []byte(profileText))
	if err != nil {
		t.Fatal(err)
	}
	e := p.Emulation
	if e.Medium != MediumHalfDuplex || e.RateBitsPerSecond != 2e6 || e.ProcessingDelay != 5*time.Millisecond || e.Turnaround != time.Millisecond ||
		e.FrameOverheadBytes != 20 || e.MTUBytes != 1500 || e.Queue != (Queue{Bytes: 65536, Packets: 50}) || !reflect.DeepEqual(e.Channel, Channel{Model: ChannelUniform, Loss: 0.1}) {
		t.Errorf("emulation %+v", e)
	}
	if s := e.Sites["here"]; s.RateBitsPerSecond != 1e6 || s.Channel != nil {
		t.Errorf("site here %+v", s)
	}
	want := Channel{Model: ChannelGilbertElliott, Slot: 10 * time.Millisecond, GoodToBad: 0.1, BadToGood: 0.3, LossBad: 0.8}
	if s := e.Sites["there"]; s.Channel == nil || !reflect.DeepEqual(*s.Channel, want) {
		t.Errorf("site there %+v", s)
	}
	byName := map[string]Parameter{}
	for _, f := range p.Parameters {
		byName[f.Name] = f
	}
	for _, f := range []Parameter{
		{Name: "frequency", Value: 402.5, Unit: "MHz", Source: "table 1"},
		{Name: "delay", Unit: "ms", Source: "not given", Unknown: true},
		{Name: "power", Value: -3, Unit: "dBm", Source: "guessed", Uncertain: true},
		{Name: "emulation.rate", Value: 2e6, Unit: "bit/s", Source: "s"},
		{Name: "emulation.processing_delay", Value: 5, Unit: "ms", Source: "s"},
		{Name: "emulation.sites.here.rate", Value: 1e6, Unit: "bit/s", Source: "s"},
	} {
		if byName[f.Name] != f {
			t.Errorf("parameter %+v, want %+v", byName[f.Name], f)
		}
	}
	if len(p.Hash) != 64 {
		t.Errorf("hash %q", p.Hash)
	}
}

func TestParseTopology(t *testing.T) {
	p, err := ParseTopology("t.yaml", []byte(topologyText))
	if err != nil {
		t.Fatal(err)
	}
	if p.Station(RoleClient).Elevation != 60 || math.Abs(p.Station(RoleServer).Elevation-60.96) > 1e-9 || p.Station(RoleRelay).Elevation != 0 {
		t.Errorf("stations %+v", p.Stations)
	}
	if len(p.Notes) != 1 || p.Notes[0] != "Elevation unknown, and given as 0 m: b." {
		t.Errorf("notes %q", p.Notes)
	}
	// A thousandth of a degree of latitude on the mean sphere is 111.195 m.
	if p.Links[0].DistanceMetres != 111.2 || math.Abs(p.Links[1].DistanceMetres-111.195) > 0.001 {
		t.Errorf("links %+v", p.Links)
	}
}

func TestProfileRefused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"title: Test radio", "titel: x", "unknown key \"titel\" (did you mean \"title\"?)"},
		{"402.5 MHz, source: table 1", "402.5 MHz", "figures[0].source is missing"},
		{"402.5 MHz", "402.5", `figures[0].value: unknown unit ""`},
		{"402.5 MHz", "402.5 Mhz", `unknown unit "Mhz" (did you mean "MHz"?)`},
		{"402.5 MHz", "many MHz", `expected a number and a unit such as "5 MHz", or unknown, found "many MHz"`},
		{"unknown, unit: ms", "unknown", "figures[1].unit is missing"},
		{"name: delay", "name: frequency", `parameter "frequency" is given twice`},
		{"value: half-duplex", "value: duplex", `unknown "duplex"; there are full-duplex, half-duplex, shared`},
		{"rate: {value: 2 Mbit/s, source: s}", "rate: 2 Mbit/s", "emulation.rate: expected a mapping"},
		{"2 Mbit/s", "0 bit/s", "expected a rate from 1 bit/s to 100 Gbit/s"},
		{"value: 5ms", "value: 2h", "expected at most 1m0s, found 2h0m0s"},
		{"value: 1500 B", "value: 100 B", "expected a size from 576 B to 65535 B"},
		{"bytes: 64 KiB, packets: 50", "bytes: 100 B", "no packet of the MTU (1500 B) would fit"},
		{"bytes: 64 KiB, packets: 50, ", "", "emulation.queue: expected a bound in bytes, packets or both"},
		{"loss: 0.1", "loss: 1.1", "emulation.channel.loss: expected a number from 0 to 1"},
		{"model: uniform", "model: perfect", "a perfect channel has no such parameter; its parameters: none"},
		{"loss: 0.1", "loss: 0.1, loss_bad: 1", "a uniform channel has no such parameter; its parameters: loss"},
		{"slot: 10ms", "slot: 10ns", "channel.slot: expected at least 1µs, found 10ns"},
		{"bad_to_good: 0.3, ", "", "bad_to_good is missing"},
		{"bad_to_good: 0.3", "bad_to_good: 0", "expected a number from 1e-09 to 1"},
		{"{rate: 1 Mbit/s, source: s}", "{source: s}", "expected rate, channel or both"},
		{"{rate: 1 Mbit/s, source: s}", "{rate: 1 Mbit/s}", "emulation.sites.here.source is missing"},
	} {
		text := strings.Replace(profileText, c.old, c.new, 1)
		if text == profileText {
			t.Fatalf("%q is not in the profile", c.old)
		}
		if _, err := ParseProfile("p", []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s → %s: got\n%v\nwant\n%s", c.old, c.new, err, c.want)
		}
	}
}

func TestTopologyRefused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"latitude: 39,", "latitude: 91,", "expected a number from -90 to 90"},
		{"role: relay", "role: client", "station a is the client already"},
		{"name: b", "name: a", `another station is called "a" too`},
		{"  - {name: c, role: server", "  #- {name: c, role: server", "no station has the role server"},
		{"role: client,", "role: sink,", `unknown "sink"; there are client, relay, server`},
		{"111.2 m", "300 m", "300.0 m stated, but the positions are 111.2 m apart"},
		{"[client, relay]", "[client]", "expected two different roles"},
		{"[client, relay]", "[client, client]", "expected two different roles"},
		{"[client, relay]", "[server, relay]", "the link between relay and server is given twice"},
		{"  - {between: [client, relay], distance: 111.2 m, source: s}\n", "", "no way leads from the client to the server"},
		{", elevation: 60 m", "", "elevation is missing"},
		{"elevation: 60 m", "elevation: 1e300 km", "expected an elevation from -500 m to 9000 m, found \"1e300 km\""},
		{"elevation: 60 m", "elevation: -501 m", "expected an elevation from -500 m to 9000 m, found \"-501 m\""},
		{"elevation: 60 m", "elevation: --5 m", "expected a height such as"},
		{"111.2 m", "1e300 km", "expected at most 20040 km"},
		{"name: b", "name: \"\\e[31mb\"", "holds the control character U+001B"},
		{", source: computed from the positions", "", "source is missing"},
		{"stations:\n", "stations:\n" + strings.Repeat("  - {name: x, role: relay}\n", 2000), "expected at most 3 stations, one for each role, found 2003"},
		{"links:\n", "links:\n" + strings.Repeat("  - {between: [client, relay], source: s}\n", 2), "expected at most 3 links, one for each pair of stations, found 4"},
	} {
		text := strings.Replace(topologyText, c.old, c.new, 1)
		if text == topologyText {
			t.Fatalf("%q is not in the topology", c.old)
		}
		if _, err := ParseTopology("t", []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s → %s: got\n%v\nwant\n%s", c.old, c.new, err, c.want)
		}
	}
}

// The shore of the Dead Sea lies 430 m below the sea.
func TestElevationBelowSea(t *testing.T) {
	topo, err := ParseTopology("t", []byte(strings.Replace(topologyText, "elevation: 60 m", "elevation: -430 m", 1)))
	if err != nil || !slices.ContainsFunc(topo.Stations, func(s Station) bool { return s.Elevation == -430 }) {
		t.Errorf("%+v, %v", topo, err)
	}
}

// A spreadsheet writes a byte-order mark; a fault in a trace is the trace's, and
// names its line.
func TestTraceOfProfile(t *testing.T) {
	text := withChannel("model: trace, file: hill.csv", "")
	of := func(trace string) error {
		_, err := ReadProfile("radios/p.yaml", []byte(text), func(string) ([]byte, error) { return []byte(trace), nil })
		return err
	}
	if err := of("\ufefftime_s,loss\n0,0\n1,0.5\n"); err != nil {
		t.Errorf("with a byte-order mark: %v", err)
	}
	want := `radios/hill.csv:3:3: loss: expected a number, found "x"`
	if err := of("time_s,loss\n0,0\n1,x\n"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestResolve(t *testing.T) {
	p, err := ParseProfile("p", []byte(profileText))
	if err != nil {
		t.Fatal(err)
	}
	topo, err := ParseTopology("t", []byte(topologyText))
	if err != nil {
		t.Fatal(err)
	}
	n, err := Resolve(p, topo)
	if err != nil {
		t.Fatal(err)
	}
	if n.Links[0].RateBitsPerSecond != 1e6 || n.Links[1].RateBitsPerSecond != 2e6 || n.Links[0].Channel.Model != ChannelUniform {
		t.Errorf("a site's rate is the relay–client link's alone: %+v", n.Links)
	}
	topo.Name = "there"
	if n, err = Resolve(p, topo); err != nil || n.Links[0].Channel.Model != ChannelGilbertElliott || n.Links[1].Channel.Model != ChannelUniform || n.Links[0].RateBitsPerSecond != 2e6 {
		t.Errorf("a site's channel is the relay–client link's alone: %+v, %v", n, err)
	}
	// 111.2 m are 371 ns of propagation.
	if d := n.Links[0].Delay - 5*time.Millisecond; d != 370*time.Nanosecond {
		t.Errorf("propagation %v", d)
	}
	p.Emulation = nil
	if _, err := Resolve(p, topo); err == nil {
		t.Error("a radio without emulation was resolved")
	}
}

func TestRouteAndRoundTrip(t *testing.T) {
	n := &Network{FrameOverheadBytes: 10, Links: []Link{
		{A: RoleClient, B: RoleRelay, RateBitsPerSecond: 1e6, Delay: 5 * time.Millisecond},
		{A: RoleServer, B: RoleRelay, RateBitsPerSecond: 2e6, Delay: 7 * time.Millisecond},
	}}
	if got := n.Route(RoleClient, RoleServer); len(got) != 3 || got[1] != RoleRelay {
		t.Errorf("route %v", got)
	}
	// Two hops: 2·(5+7) ms, and (940+40+2·10) B = 8000 bit at each rate.
	if got := n.RoundTrip(RoleClient, RoleServer, 940); got != 36*time.Millisecond {
		t.Errorf("round trip %v", got)
	}
	n.Framing, n.FEC = &Framing{FrameBytes: 50, HeaderBytes: 10}, &FEC{CodeRate: 0.5} // 100 B are 130 B, 40 B are 50 B
	if got := n.RoundTrip(RoleClient, RoleServer, 100); got != 24*time.Millisecond+time.Duration(180*8*2*1500) {
		t.Errorf("round trip with frames and a code %v", got)
	}
	if got := n.Route(RoleClient, RoleClient); len(got) != 1 {
		t.Errorf("route to itself %v", got)
	}
	if got := (&Network{}).Route(RoleClient, RoleServer); got != nil {
		t.Errorf("route without links %v", got)
	}
}

func TestMeanLoss(t *testing.T) {
	for _, c := range []struct {
		ch   Channel
		want float64
	}{
		{Channel{Model: ChannelPerfect}, 0},
		{Channel{Model: ChannelUniform, Loss: 0.2}, 0.2},
		{Channel{Model: ChannelGilbertElliott, GoodToBad: 0.1, BadToGood: 0.3, LossGood: 0.1, LossBad: 0.9}, 0.75*0.1 + 0.25*0.9},
		{Channel{Model: ChannelGilbertElliott, LossGood: 0.1, LossBad: 0.9}, 0.1},
	} {
		if got := c.ch.MeanLoss(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: %v, want %v", c.ch, got, c.want)
		}
	}
}

func seeds(f *testing.F, dir, first string) {
	f.Add([]byte(first))
	files, err := filepath.Glob(filepath.Join("../..", dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no seed files in %s: %v", dir, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

func finite(t *testing.T, xs ...float64) {
	t.Helper()
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Errorf("value %v", x)
		}
	}
}

// FuzzParseProfile: a profile is refused with its problems, or it can be
// emulated: rates above zero, probabilities within 0 and 1.
func FuzzParseProfile(f *testing.F) {
	seeds(f, "radio-profiles", profileText)
	f.Add([]byte(strings.Replace(profileText, "emulation:\n", attachText, 1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseProfile("f", text)
		if err != nil {
			if ps := (yamldoc.Problems)(nil); !errors.As(err, &ps) {
				t.Fatalf("error %T", err)
			}
			return
		}
		for _, fig := range p.Parameters {
			finite(t, fig.Value)
		}
		if e := p.Emulation; e != nil {
			if !(e.RateBitsPerSecond >= 1) || e.MTUBytes < minMTU || e.ProcessingDelay < 0 || e.Queue.Bytes < 0 || e.Queue.Packets < 0 || e.Medium == "" || e.Channel.Model == "" {
				t.Errorf("emulation %+v", e)
			}
			if l := e.Channel.MeanLoss(); !(l >= 0 && l <= 1) {
				t.Errorf("mean loss %v of %+v", l, e.Channel)
			}
		}
	})
}

// FuzzParseTopology: a topology is refused with its problems, or it leads from
// client to server over links of finite length.
func FuzzParseTopology(f *testing.F) {
	seeds(f, "topologies", topologyText)
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseTopology("f", text)
		if err != nil {
			if ps := (yamldoc.Problems)(nil); !errors.As(err, &ps) {
				t.Fatalf("error %T", err)
			}
			return
		}
		if p.Station(RoleClient) == nil || p.Station(RoleServer) == nil || len(p.Links) == 0 {
			t.Errorf("taken: %+v", p)
		}
		for _, l := range p.Links {
			finite(t, l.DistanceMetres)
			if l.DistanceMetres < 0 || l.A == l.B || l.A == "" || l.B == "" {
				t.Errorf("link %+v", l)
			}
		}
	})
}
