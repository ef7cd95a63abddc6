package sheet_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
)

const sources = `name: sources
radio: lttcp-uniform
topology: point-to-point
size: 10 KB
treatments:
  - {name: a, protocol: tcp}
  - {name: b, protocol: udt}
mixes:
  - {name: both, label: Both, flows: [{treatment: a, count: 2, duration: 10s}, {treatment: b, start: 3s, spacing: 1s, count: 2}]}
groups:
  - {name: plain, treatments: [a, b]}
  - {name: mixed, treatments: [both]}
  - {name: on-off, treatments: [a, b], flows: [{count: 20, duration: 280s, on_off: {on: 50s, idle: 10s}}]}
iterations: 2
seed: 7
`

// TestProbesBothWays: a call has pauses of its own in each direction, the same for
// every treatment, and those from the client are what they are without the others.
func TestProbesBothWays(t *testing.T) {
	const there = "{treatment: v, alone: 8s}"
	text := "name: call\nradio: mpu4\ntopology: k-lot\nsize: 64 KiB\ntreatments: [{name: a, protocol: tcp}, {name: b, protocol: udt}, {name: v, protocol: probe}]\n" +
		"probes: [" + there + "]\niterations: 1\nseed: 7\n"
	before := compile(t, text)[0].Trials
	trials := compile(t, strings.Replace(text, there, there+", {treatment: v, from: server, alone: 5s}", 1))[0].Trials
	for i := range trials {
		p := trials[i].Probes
		if len(p) != 2 || p[0] != before[i].Probes[0] || p[0].FromServer() || !p[1].FromServer() || p[1].PayloadSeed == p[0].PayloadSeed || p[1].PayloadSeed != trials[0].Probes[1].PayloadSeed {
			t.Errorf("trial %d: %+v, without the probe from the server %+v", i, p, before[i].Probes)
		}
	}
	if p := trials[2].Probes; p[0].Duration != 8*time.Second || p[1].Duration != 5*time.Second {
		t.Errorf("alone: %+v", p)
	}
}

func TestFlows(t *testing.T) {
	sheets := compile(t, sources)
	if len(sheets) != 3 {
		t.Fatalf("%d sheets", len(sheets))
	}
	plain, mixed := sheets[0], sheets[1]
	if f := plain.Trials[0].Flows; len(f) != 1 || f[0].SizeBytes != 10240 || f[0].Duration != 0 || len(plain.Mixes) != 0 {
		t.Errorf("plain: %+v", f)
	}
	if len(mixed.Trials) != 2 || mixed.Trials[0].Treatment != "both" || mixed.Label("both") != "Both" || mixed.Label("a") != "a" || mixed.Label("c") != "c" {
		t.Fatalf("mixed: %+v", mixed.Trials)
	}
	// Both listeners are needed; ports are those of the whole plan.
	if len(mixed.Treatments) != 2 || mixed.Treatments[0].Port != runsheet.FirstPort || mixed.Treatments[1].Port != runsheet.FirstPort+1 {
		t.Errorf("treatments of the mix: %+v", mixed.Treatments)
	}
	var got []string
	seeds := map[uint64]bool{}
	for _, f := range mixed.Trials[0].Flows {
		got = append(got, fmt.Sprint(f.Treatment, " ", f.Start, " ", f.Duration, " ", f.SizeBytes))
		seeds[f.PayloadSeed] = true
	}
	// 10 Mbit/s for 10 s are 12 500 000 B; a quarter and a MiB above.
	want := "a 0s 10s 16673576, a 0s 10s 16673576, b 3s 0s 10240, b 4s 0s 10240"
	if strings.Join(got, ", ") != want || len(seeds) != 4 {
		t.Errorf("flows of the mix:\n%s\nwant\n%s\n%d different seeds", strings.Join(got, ", "), want, len(seeds))
	}
	if est := sheet.Estimate(mixed); est[0] < 10*time.Second || est[0] > 11*time.Second {
		t.Errorf("estimate of flows of 10 s: %s", est[0])
	}
	if s := sheet.Summary(mixed); !strings.Contains(s, "mixed: 10 KiB: 2 trials (1 treatments × 2 iterations") {
		t.Errorf("summary %q", s)
	}
}

// Sources go on and off with the stated means, alike for every treatment of an
// iteration and differently in another, and no on-time outlasts the duration.
func TestOnOff(t *testing.T) {
	s := compile(t, sources)[2]
	times := func(tr runsheet.Trial) string {
		var out []string
		for _, f := range tr.Flows {
			out = append(out, fmt.Sprint(f.Session, f.Start, f.Duration))
		}
		return strings.Join(out, " ")
	}
	if times(s.Trials[0]) != times(s.Trials[1]) || times(s.Trials[0]) == times(s.Trials[2]) {
		t.Error("on-times are not those of the iteration")
	}
	text := strings.Replace(sources, "count: 20, duration: 280s", "count: 100, duration: 100000s", 1)
	text = strings.Replace(strings.Replace(text, "{on: 50s, idle: 10s}", "{on: 1000s, idle: 500s}", 1), "seed: 7", "seed: 7\nlimits: {transfer: 30h}", 1)
	long := compile(t, text)[2].Trials[0].Flows
	var on, off time.Duration
	n, m := 0, 0
	for i, f := range long {
		if f.Duration <= 0 || f.Start+f.Duration > 100000*time.Second {
			t.Fatalf("flow %+v", f)
		}
		on, n = on+f.Duration, n+1
		if i > 0 && long[i-1].Session == f.Session {
			off, m = off+f.Start-long[i-1].Start-long[i-1].Duration, m+1
		}
	}
	if long[len(long)-1].Session != 100 {
		t.Errorf("%d sources", long[len(long)-1].Session)
	}
	// Some 6700 draws of each: the mean within 4 standard errors, 5 %.
	if a, b := on.Seconds()/float64(n), off.Seconds()/float64(m); math.Abs(a-1000) > 50 || math.Abs(b-500) > 25 {
		t.Errorf("on %g s, idle %g s on average of %d and %d", a, b, n, m)
	}
}

// Settings are part of what seeds depend on, and what is not swept is not.
func TestSettingsInSheets(t *testing.T) {
	const text = `name: swept
radio: hf-4800-arq
topology: point-to-point
size: 10000 B
sweep: [{name: frame, set: framing.frame, values: [25 B, 100 B]}]
treatments: [{name: a, protocol: tcp, options: {mss: 360 B}}]
iterations: 1
seed: 7
`
	sheets := compile(t, text)
	a, b := sheets[0], sheets[1]
	if a.Network.Framing.FrameBytes != 25 || b.Network.Framing.FrameBytes != 100 || a.Cell.Label != "frame 25 B" || a.Cell.Settings[0] != (runsheet.Setting{Axis: "frame", Parameter: "framing.frame", Value: "25 B", Label: "25 B"}) {
		t.Errorf("%+v, %+v", a.Cell, a.Network.Framing)
	}
	if a.Trials[0].ChannelSeed == b.Trials[0].ChannelSeed {
		t.Error("two settings share a channel seed")
	}
	alone := compile(t, strings.Replace(text, "[25 B, 100 B]", "[100 B]", 1))[0]
	if alone.Trials[0].ChannelSeed != b.Trials[0].ChannelSeed || alone.Trials[0].Flows[0].PayloadSeed != b.Trials[0].Flows[0].PayloadSeed {
		t.Error("leaving a value out of a sweep changed the seeds of another")
	}
}

// The estimates of the HF radios order as the link's efficiency does.
func TestEstimateKnowsTheLink(t *testing.T) {
	estimate := func(radioName string) time.Duration {
		s := compile(t, `name: e
radio: `+radioName+`
topology: point-to-point
size: 10000 B
treatments: [{name: a, protocol: tcp, options: {mss: 360 B}}]
iterations: 1
seed: 7
`)[0]
		return sheet.Estimate(s)[0]
	}
	raw, coded, arq := estimate("hf-4800"), estimate("hf-4800-fec"), estimate("hf-4800-arq")
	// 10 000 B at 4800 bit/s are 16.7 s without anything else, twice that after the code.
	if arq < 17*time.Second || arq > raw || coded < 34*time.Second || coded > 50*time.Second {
		t.Errorf("uncoded %s, FEC %s, ARQ %s", raw, coded, arq)
	}
}

// A flow without end has more to send than its radio can carry, also where
// movement or a trace raises the rate.
func TestEndlessFlowsOutlastTheRadio(t *testing.T) {
	p, err := plan.Parse(nil, "p", []byte(sources), loadCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	faster := *p.Cells[1].Radio
	e := *faster.Emulation
	e.Channel = radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Step: time.Second, RateBitsPerSecond: []float64{1e6, 80e6}, Loss: []float64{0, 0}}}
	faster.Emulation = &e
	p.Cells[1].Radio = &faster
	sheets, err := sheet.Compile(nil, p)
	if err != nil {
		t.Fatal(err)
	}
	if f := sheets[1].Trials[0].Flows[0]; float64(f.SizeBytes) < 80e6/8*f.Duration.Seconds() {
		t.Errorf("%d B for %s at up to 80 Mbit/s", f.SizeBytes, f.Duration)
	}
}

// The sheets of the papers' plans, one line each: the hashes cover every byte.
// Compiling thousands of trials is quick, and no sheet is large.
func TestGoldenPapers(t *testing.T) {
	var out strings.Builder
	for _, name := range []string{"decola-2006", "dantas-2011", "lttcp-2006", "qaddoura-2006"} {
		var total time.Duration
		fmt.Fprintf(&out, "%s\n", name)
		for _, s := range ready(t, name) {
			b := encode(t, s)
			if len(b) > 1<<20 {
				t.Errorf("%s, run %d: a sheet of %d bytes", name, s.Cell.Index+1, len(b))
			}
			total += sheet.Total(s)
			fmt.Fprintf(&out, "%d %s\n  %s\n", s.Cell.Index+1, sheet.Summary(s), runsheet.Hash(b))
		}
		fmt.Fprintf(&out, "in all %s\n", total.Round(time.Minute))
	}
	golden(t, "papers.txt", []byte(out.String()))
}
