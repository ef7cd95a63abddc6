package plan_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/plan"
	"linktrial/plans"
)

func testCatalog(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(catalog.Config{DriversDir: "../catalog/testdata/drivers"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sixTreatments differ in an option.
const sixTreatments = `  - {name: a, protocol: tcp, options: {receive_buffer: 4 KiB}}
  - {name: b, protocol: tcp, options: {receive_buffer: 5 KiB}}
  - {name: c, protocol: tcp, options: {receive_buffer: 6 KiB}}
  - {name: d, protocol: tcp, options: {receive_buffer: 7 KiB}}
  - {name: e, protocol: tcp, options: {receive_buffer: 8 KiB}}
  - {name: f, protocol: tcp, options: {receive_buffer: 9 KiB}}
`

const small = `name: small
radio: mpu4
topology: k-lot
size: 64 KiB
treatments:
  - {name: a, protocol: tcp}
iterations: 2
seed: 7
`

func TestDefaults(t *testing.T) {
	p, err := plan.Parse(nil, "p.yaml", []byte(small), testCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	want := runsheet.Limits{Connect: 30 * time.Second, Transfer: 5 * time.Minute, Attempts: 1}
	if p.Limits != want || p.Order != plan.OrderFixed || p.Control != runsheet.ControlOutOfBand || p.SampleInterval != 100*time.Millisecond || p.Capture || p.Title != "small" {
		t.Errorf("defaults: %+v", p)
	}
	a := p.Treatments[0]
	if a.Label != "a" || a.DriverVersion != "1.0.0" || len(a.Options) != 0 || a.Options == nil || a.Missing != "" {
		t.Errorf("treatment: %+v", a)
	}
	if got := p.Summary(); got != "small: 1 run, 1 treatment, 2 iterations, 2 trials" {
		t.Errorf("summary %q", got)
	}
}

func TestEverything(t *testing.T) {
	p, err := plan.Parse(nil, "p.yaml", []byte(`
name: all
title: All of it
notes: [one]
radio: [mpu4, tw-400-tsm-e]
topology: [k-lot, vip-lot]
size: {k-lot: 1 KiB, vip-lot: [2 KiB, 3 KiB]}
exclude:
  - {radio: mpu4, topology: k-lot}
  - {size: 3 KiB}
treatments:
  - {name: a, label: A, protocol: tcp, options: {congestion: reno, receive_buffer: 64 KiB}, complete_knowledge: true}
  - {name: b, protocol: udt}
  - {name: c, protocol: scps-tp, missing: not built, options: {x: [1, two]}}
iterations: 3
order: counterbalanced
seed: 18446744073709551615
limits: {connect: 1s, transfer: 2m, attempts: 3, pause: 4s}
control: in-band
sample_interval: 200ms
capture: true
published:
  source: here
  rows:
    - {radio: mpu4, topology: vip-lot, treatment: c, n: 2, average: 2, maximum: 3, minimum: 1, sd: 0.5}
    - {radio: mpu4, topology: vip-lot, treatment: a, n: 2, average: 2, maximum: 3, minimum: 1, sd: 0.5, source: there}
`), testCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	var cells []string
	for _, c := range p.Cells {
		cells = append(cells, fmt.Sprint(c.Radio.Name, "/", c.Topology.Name, "/", c.SizeBytes))
	}
	if want := []string{"mpu4/vip-lot/2048", "tw-400-tsm-e/k-lot/1024", "tw-400-tsm-e/vip-lot/2048"}; !reflect.DeepEqual(cells, want) {
		t.Errorf("cells %v, want %v", cells, want)
	}
	a := p.Treatments[0]
	if !a.CompleteKnowledge || !reflect.DeepEqual(a.Options, map[string]any{"congestion": "reno", "receive_buffer": int64(65536)}) {
		t.Errorf("treatment a: %+v", a)
	}
	c := p.Treatments[2]
	if c.Missing != "not built" || !reflect.DeepEqual(c.Options, map[string]any{"x": []any{int64(1), "two"}}) {
		t.Errorf("treatment c: %+v", c)
	}
	if !reflect.DeepEqual(p.Runnable(), []string{"a", "b"}) || !reflect.DeepEqual(p.Missing(), []string{"c"}) {
		t.Errorf("runnable %v, missing %v", p.Runnable(), p.Missing())
	}
	if (p.Limits != runsheet.Limits{Connect: time.Second, Transfer: 2 * time.Minute, Attempts: 3, Pause: 4 * time.Second}) || p.Control != runsheet.ControlInBand || !p.Capture || p.Seed != 1<<64-1 {
		t.Errorf("plan: %+v", p)
	}
	if len(p.Notes) != 2 || !strings.Contains(p.Notes[1], "balanced over 2 iterations") {
		t.Errorf("notes %q", p.Notes)
	}
	if r := p.PublishedFor("mpu4", "vip-lot", "c"); r == nil || r.Source != "here" || r.SD != 0.5 {
		t.Errorf("published %+v", r)
	}
	if r := p.PublishedFor("mpu4", "vip-lot", "a"); r == nil || r.Source != "there" {
		t.Errorf("published %+v", r)
	}
	if r := p.PublishedFor("mpu4", "vip-lot", "b"); r != nil {
		t.Errorf("published %+v", r)
	}
}

// A plan with three different mistakes is refused with all three.
func TestThreeMistakes(t *testing.T) {
	text := `name: three
radio: prc-117
topology: vip-lot
size: 256 KiB
treatments:
  - {name: a, protocol: tpc}
  - {name: b, protocol: tcp, options: {congestio: cubic}}
iterations: 3
seed: 1
`
	_, err := plan.Parse(nil, "three.yaml", []byte(text), testCatalog(t))
	var ps yamldoc.Problems
	if !errors.As(err, &ps) {
		t.Fatalf("got %v", err)
	}
	want := `three.yaml:2:8: radio: unknown radio "prc-117"; there are ` + strings.Join(testCatalog(t).Profiles(), ", ") + `
three.yaml:6:25: treatments[0].protocol: unknown protocol "tpc" (did you mean "tcp"?); there are haul, lttcp, probe, quic, sctp, split, tcp, udt; drivers are looked for in ../catalog/testdata/drivers, --drivers adds a folder (a treatment whose protocol does not exist yet gives the reason with missing)
three.yaml:7:40: treatments[1].options: protocol tcp has no option "congestio" (did you mean "congestion"?); there are congestion, ecn, initial_window, mss, multipath, receive_buffer, rto_max, rto_min, send_buffer, syn_retries, user_timeout`
	if len(ps) != 3 || err.Error() != want {
		t.Errorf("got %d problems:\n%v\nwant\n%s", len(ps), err, want)
	}
}

func TestRefused(t *testing.T) {
	cat := testCatalog(t)
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown key", "seed: 7", "seed: 7\nseeds: 1", `9:1: unknown key "seeds" (did you mean "seed"?)`},
		{"no seed", "seed: 7\n", "", "1:1: seed is missing"},
		{"name", "name: small", "name: Small plan", `1:7: name: "Small plan", expected lower-case`},
		{"unknown topology", "topology: k-lot", "topology: k-lots", `3:11: topology: unknown topology "k-lots" (did you mean "k-lot"?); there are flag-pole, k-lot, `},
		{"radio twice", "radio: mpu4", "radio: [mpu4, mpu4]", `2:15: radio[1]: radio "mpu4" is given twice`},
		{"no radio", "radio: mpu4", "radio: []", "2:8: radio: expected at least one"},
		{"radio of a wrong form", "radio: mpu4", "radio: {name: mpu4}", "2:8: radio: expected text, found a mapping"},
		{"size", "64 KiB", "64", `4:7: size: expected a size such as "256 KiB"`},
		{"size too large", "64 KiB", "2000 GiB", "4:7: size: expected 1 B to 1024 GiB, found 2000 GiB"},
		{"size twice", "64 KiB", "[1 KiB, 1024 B]", "4:15: size[1]: size 1 KiB is given twice"},
		{"size of no topology", "64 KiB", "{k-lot: 1 KiB, vip-lot: 1 KiB}", `4:22: size: topology "vip-lot" is not one of the plan's; there are k-lot`},
		{"topology of no size", "topology: k-lot\nsize: 64 KiB", "topology: [k-lot, vip-lot]\nsize: {k-lot: 1 KiB}", "4:7: size: no size for topology vip-lot"},
		{"exclude all", "seed: 7", "seed: 7\nexclude: [{radio: mpu4}]", "9:10: exclude: nothing is left to run"},
		{"exclude nothing", "seed: 7", "seed: 7\nexclude: [{size: 1 B}]", "9:11: exclude[0]: no cell of the plan is left"},
		{"exclude unknown", "seed: 7", "seed: 7\nexclude: [{radio: mpu5}]", `9:19: exclude[0].radio: unknown radio of the plan "mpu5" (did you mean "mpu4"?)`},
		{"exclude what", "seed: 7", "seed: 7\nexclude: [{}]", "9:11: exclude[0]: expected radio, topology or size"},
		{"no treatments", "  - {name: a, protocol: tcp}\n", "  []\n", "6:3: treatments: expected 1 to 200 treatments, found 0"},
		{"treatment twice", "  - {name: a, protocol: tcp}\n", "  - {name: a, protocol: tcp}\n  - {name: a, protocol: udt}\n", `7:12: treatments[1].name: treatment "a" is given twice`},
		{"all missing", "protocol: tcp", "protocol: scps-tp, missing: later", "6:3: treatments: every treatment is missing"},
		{"missing without reason", "protocol: tcp", `protocol: scps-tp, missing: " "`, "p:6:43: treatments[0].missing: expected the reason"},
		{"option bound", "protocol: tcp", "protocol: tcp, options: {receive_buffer: 1 KiB}", "6:56: treatments[0].options.receive_buffer: expected 4 KiB to 64 MiB, found 1 KiB"},
		{"protocol without options", "protocol: tcp", "protocol: udt, options: {x: 1}", `protocol udt has no option "x"; it has none`},
		{"iterations", "iterations: 2", "iterations: 0", `7:13: iterations: expected a whole number from 1 to 10000, found "0"`},
		{"order", "seed: 7", "seed: 7\norder: randm", `9:8: order: unknown "randm" (did you mean "random"?); there are fixed, random, counterbalanced`},
		{"limits", "seed: 7", "seed: 7\nlimits: {transfer: 1ms, attempts: 0}", "9:20: limits.transfer: expected 100ms to 168h0m0s, found 1ms"},
		{"limits of a wrong form", "seed: 7", "seed: 7\nlimits: 5", `9:9: limits: expected a mapping, found "5"`},
		{"published for another radio", "seed: 7", "seed: 7\npublished: {source: s, rows: [{radio: x, topology: k-lot, treatment: a, n: 1, average: 1, maximum: 1, minimum: 1, sd: 0}]}", `unknown radio of the plan "x"`},
		{"published out of range", "seed: 7", "seed: 7\npublished: {source: s, rows: [{radio: mpu4, topology: k-lot, treatment: a, n: 1, average: 5, maximum: 4, minimum: 1, sd: 0}]}", "average: 5 does not lie between minimum 1 and maximum 4"},
		{"published twice", "seed: 7", "seed: 7\npublished: {source: s, rows: [&r {radio: mpu4, topology: k-lot, treatment: a, n: 1, average: 4, maximum: 4, minimum: 1, sd: 0}, *r]}", "the published values of a with mpu4 at k-lot are given twice"},
		{"too many trials", "size: 64 KiB\ntreatments:\n  - {name: a, protocol: tcp}\niterations: 2", "size: [1 B, 2 B, 3 B, 4 B, 5 B, 6 B]\ntreatments:\n  - {name: a, protocol: tcp}\n  - {name: b, protocol: tcp, options: {congestion: reno}}\niterations: 10000", "iterations: the plan has 120000 trials, at most 100000 fit"},
		{"too many trials in a run", "treatments:\n  - {name: a, protocol: tcp}\niterations: 2", "treatments:\n" + sixTreatments + "iterations: 10000", "iterations: a run of the plan has 60000 trials, at most 50000 fit"},
		{"too many sizes", "size: 64 KiB", "size: [" + strings.Repeat("1 B, ", 1001) + "]", "4:7: size: expected at most 1000 sizes, found 1001"},
		{"published without a value", "seed: 7", "seed: 7\npublished: {source: s, rows: [{radio: mpu4, topology: k-lot, treatment: a, n: 1, maximum: 4, minimum: 1, sd: 0}]}", "average is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(small, c.old, c.new, 1)
			if text == small {
				t.Fatalf("%q is not in the plan", c.old)
			}
			_, err := plan.Parse(nil, "p", []byte(text), cat)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
		})
	}
	if _, err := plan.Parse(nil, "p", make([]byte, 5<<20), cat); err == nil || !strings.Contains(err.Error(), "5 MiB long, expected at most 256 KiB") {
		t.Errorf("a huge plan: %v", err)
	}
}

// Choices that the nodes' probes report are checked like any others.
func TestCongestionChoices(t *testing.T) {
	text := strings.Replace(small, "protocol: tcp", "protocol: tcp, options: {congestion: cubik}", 1)
	cat := testCatalog(t)
	if _, err := plan.Parse(nil, "p", []byte(text), cat); err != nil {
		t.Errorf("without a probe, any congestion control may exist: %v", err)
	}
	_, err := plan.Parse(nil, "p", []byte(text), cat.WithChoices("tcp", "congestion", []string{"bbr", "cubic", "reno"}))
	if err == nil || !strings.Contains(err.Error(), `unknown "cubik" (did you mean "cubic"?); there are bbr, cubic, reno`) {
		t.Errorf("got %v", err)
	}
}

// A driver that has come to exist ends its treatment being missing.
func TestMissingEndsWithTheDriver(t *testing.T) {
	text := strings.Replace(small, "protocol: tcp", "protocol: tcp, missing: not yet", 1)
	p, err := plan.Parse(nil, "p", []byte(text), testCatalog(t))
	if err != nil || p.Treatments[0].Missing != "" {
		t.Errorf("got %+v, %v", p, err)
	}
}

// The ready plans, against manifests like the real ones and against the real ones.
func TestReadyPlans(t *testing.T) {
	for _, drivers := range []string{"../catalog/testdata/drivers", "../../protocols" + string(os.PathListSeparator) + "../../protocols/haul/cmd" + string(os.PathListSeparator) + "../../protocols/lttcp/cmd"} {
		cat, err := catalog.Load(catalog.Config{DriversDir: drivers})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"quickstart":          "quickstart: 1 run, 6 treatments, 3 iterations, 18 trials",
			"two-laptops":         "two-laptops: 1 run, 3 treatments, 8 iterations, 24 trials",
			"breedy-2015":         "breedy-2015: 12 runs, 4 treatments, 10 iterations, 480 trials",
			"transports-fairness": "transports-fairness: 6 runs, 3 treatments, 10 iterations, 160 trials",
			"sequential":          "sequential: 1 run, 4 treatments, 30 iterations, 120 trials",
			"multipath":           "multipath: 1 run, 3 treatments, 3 iterations, 9 trials",
			"delay-under-load":    "delay-under-load: 2 runs, 13 treatments, 2 iterations, 52 trials",
			"transports":          "transports: 92 runs, 12 treatments, 10 iterations, 11040 trials",
			// 4 bandwidths × 5 sizes × 7 pairs; 3 iterations of tests 1 and 2, 5 of test 3.
			"decola-2006":   "decola-2006: 140 runs, 4 treatments, 3 iterations, 1840 trials",
			"dantas-2011":   "dantas-2011: 102 runs, 1 treatment, 10 iterations, 1020 trials",
			"lttcp-2006":    "lttcp-2006: 33 runs, 6 treatments, 3 iterations, 198 trials",
			"qaddoura-2006": "qaddoura-2006: 8 runs, 2 treatments, 3 iterations, 18 trials",
		} {
			text, err := plans.Files.ReadFile(name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Parse(nil, name+".yaml", text, cat)
			if err != nil {
				t.Errorf("with the drivers of %s:\n%v", drivers, err)
				continue
			}
			if got := p.Summary(); got != want {
				t.Errorf("with the drivers of %s: got %q, want %q", drivers, got, want)
			}
		}
	}
	if files, err := plans.Files.ReadDir("."); err != nil || len(files) != 12 {
		t.Errorf("%d ready plans (%v), this test knows 12", len(files), err)
	}
}

// Williams: every treatment is equally often at every place and follows
// every other equally often.
func TestWilliams(t *testing.T) {
	for n := range 13 {
		rows := plan.Williams(n)
		want := n
		if n%2 == 1 && n > 1 {
			want = 2 * n
		}
		if len(rows) != want {
			t.Fatalf("n = %d: %d rows, want %d", n, len(rows), want)
		}
		place, follows := map[[2]int]int{}, map[[2]int]int{}
		for _, row := range rows {
			for i, tr := range row {
				place[[2]int{i, tr}]++
				if i > 0 {
					follows[[2]int{row[i-1], tr}]++
				}
			}
		}
		for a := range n {
			for b := range n {
				if place[[2]int{a, b}] != len(rows)/n {
					t.Errorf("n = %d: treatment %d is %d times at place %d", n, b, place[[2]int{a, b}], a)
				}
				if a != b && follows[[2]int{a, b}] != len(rows)/n {
					t.Errorf("n = %d: %d follows %d %d times, want %d", n, b, a, follows[[2]int{a, b}], len(rows)/n)
				}
			}
		}
	}
}

// FuzzParse: a plan is taken or refused with places, never a panic, and what
// is taken can be summed up and has only cells and treatments that exist.
func FuzzParse(f *testing.F) {
	cat := testCatalog(f)
	f.Add([]byte(small))
	f.Add([]byte(grouped))
	f.Add([]byte(probing))
	files, err := filepath.Glob("../../plans/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	files = append(files, "testdata/require.yaml", "testdata/valid.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("name: x\nradio: [mpu4]\ntopology: {}\nsize: {k-lot: []}\ntreatments: [3, {}, {name: [], protocol: {}}]\nexclude: [{}, 3]\npublished: {rows: [{}]}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := plan.Parse(nil, "f", text, cat)
		if err != nil {
			var ps yamldoc.Problems
			if !errors.As(err, &ps) || len(ps) == 0 {
				t.Fatalf("error %v (%T)", err, err)
			}
			return
		}
		if len(p.Cells) == 0 || len(p.Runnable()) == 0 || p.Iterations < 1 || p.Limits.Attempts < 1 || p.Summary() == "" {
			t.Errorf("taken: %+v", p)
		}
		for _, c := range p.Cells {
			if c.Radio == nil || c.Topology == nil || c.SizeBytes < 0 || c.Iterations < 1 || len(c.Flows) == 0 || c.Limits.Transfer <= 0 {
				t.Errorf("cell %+v", c)
			}
			for _, r := range c.Require {
				if r.Treatment == "" && r.Probe == "" || r.AtLeast == nil && r.AtMost == nil || r.Metric.OfProbes() != (r.Probe != "") {
					t.Errorf("requirement %+v", r)
				}
			}
		}
	})
}

// The share of the trials' time for windows of in-band control: the default leaves no
// trace, so that sheets keep their hashes.
func TestControlShare(t *testing.T) {
	for share, want := range map[string]float64{"": 0, "10 %": 0, "25 %": 0.25, "1 %": 0.01} {
		line := "control: in-band\n"
		if share != "" {
			line += "control_share: " + share + "\n"
		}
		p, err := plan.Parse(nil, "p.yaml", []byte(small+line), testCatalog(t))
		if err != nil || p.ControlShare != want {
			t.Errorf("%q: %v, error %v; expected %v", share, p, err, want)
		}
	}
	for text, want := range map[string]string{
		"control: in-band\ncontrol_share: 0 %\n":     "expected a number from 1 to 100 and %",
		"control: in-band\ncontrol_share: 0.1\n":     "expected a number from 1 to 100 and %",
		"control: out-of-band\ncontrol_share: 5 %\n": "only control: in-band has windows between trials",
	} {
		_, err := plan.Parse(nil, "p.yaml", []byte(small+text), testCatalog(t))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
}
