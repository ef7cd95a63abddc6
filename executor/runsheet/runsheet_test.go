package runsheet

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

func sample() *Sheet {
	return &Sheet{
		Format: Format, Plan: "p", Control: ControlOutOfBand, Order: "fixed",
		Cell:       Cell{Radio: "r", Topology: "t", SizeBytes: 1 << 18},
		Treatments: []Treatment{{Name: "a", Protocol: "tcp", Digests: []string{"sha256:" + strings.Repeat("0a", 32)}, Options: map[string]any{"congestion": "cubic"}, Port: 5001}, {Name: "gone", Missing: "no such driver"}},
		Trials: []Trial{
			{Index: 0, Iteration: 1, Treatment: "a", ChannelSeed: 1<<64 - 1, Flows: []Flow{{Treatment: "a", From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 1 << 18, PayloadSeed: 9007199254740993}}},
			{Index: 1, Iteration: 2, Treatment: "a", Flows: []Flow{{Treatment: "a", From: radio.RoleClient, To: radio.RoleServer}}},
		},
		Limits: Limits{Connect: time.Second, Transfer: time.Minute, Attempts: 2},
		Seed:   1<<63 + 1,
	}
}

func TestRoundTrip(t *testing.T) {
	s := sample()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, got); d != "" {
		t.Error(d) // the seeds use all 64 bits
	}
	again, err := got.Encode()
	if err != nil || !bytes.Equal(b, again) || Hash(b) != Hash(again) {
		t.Errorf("encoding is not stable: %v", err)
	}
	if got.Iterations() != 2 || got.Treatment("gone") == nil || got.Treatment("x") != nil {
		t.Errorf("iterations %d", got.Iterations())
	}
}

// requiring makes a requirement of the first entry the sheet's.
func requiring(r Requirement) func(*Sheet) {
	r.Entry = 1
	return func(s *Sheet) { s.Require = []Requirement{r} }
}

func TestInvalidSheets(t *testing.T) {
	bounds := []float64{-1, 1, 2}
	below, one, two := &bounds[0], &bounds[1], &bounds[2]
	for _, c := range []struct {
		name  string
		spoil func(*Sheet)
		want  string
	}{
		{"format", func(s *Sheet) { s.Format = 2 }, "format 2"},
		{"port", func(s *Sheet) { s.Treatments[0].Port = 70000 }, "port 70000"},
		{"shared port", func(s *Sheet) { s.Treatments[1] = Treatment{Name: "b", Protocol: "b", Port: 5001} }, "share port 5001"},
		{"a path", func(s *Sheet) { s.Treatments[0].Protocol = "../tcp" }, `protocol "../tcp"`},
		{"a program", func(s *Sheet) { s.Treatments[0].Protocol = "/bin/sh" }, `protocol "/bin/sh"`},
		{"no protocol", func(s *Sheet) { s.Treatments[0].Protocol = "" }, `protocol ""`},
		{"a command", func(s *Sheet) { s.Treatments[0].Protocol = "tcp; reboot" }, "protocol"},
		{"limits", func(s *Sheet) { s.Limits.Attempts = 0 }, "limits"},
		{"index", func(s *Sheet) { s.Trials[1].Index = 5 }, "index 5"},
		{"iteration", func(s *Sheet) { s.Trials[0].Iteration = 0 }, "iteration 0"},
		{"no flows", func(s *Sheet) { s.Trials[0].Flows = nil }, "0 flows"},
		{"missing treatment", func(s *Sheet) { s.Trials[0].Flows[0].Treatment = "gone" }, `"gone"`},
		{"a transfer to the client", func(s *Sheet) { s.Trials[0].Flows[0].From, s.Trials[0].Flows[0].To = server, client }, "a flow from the server to the client"},
		{"a probe from the relay", func(s *Sheet) { probed(s, Flow{Treatment: "voice", From: relay, To: server}) }, "a probe from the relay to the server"},
		{"a probe to the relay", func(s *Sheet) { probed(s, Flow{Treatment: "voice", From: client, To: relay}) }, "a probe from the client to the relay"},
		{"a probe with a time beside a flow", func(s *Sheet) { probed(s, Flow{Treatment: "voice", From: server, To: client, Duration: 5}) }, "lasts a time exactly where the trial has no flow"},
		{"an unknown metric", requiring(Requirement{Metric: "beauty", Treatment: "a", AtLeast: one}), `requirement 1 of the sheet, of entry 1: metric "beauty", which this Linktrial does not know`},
		{"a requirement of no entry", func(s *Sheet) { s.Require = []Requirement{{Metric: MetricAverage, Treatment: "a", AtLeast: one}} }, "entry 0 of the plan's list, expected 1 or more"},
		{"a requirement without a bound", requiring(Requirement{Metric: MetricAverage, Treatment: "a"}), "metric average without a bound"},
		{"a requirement that nothing meets", requiring(Requirement{Metric: MetricAverage, Treatment: "a", AtLeast: two, AtMost: one}), "at least 2 and at most 1"},
		{"a negative bound", requiring(Requirement{Metric: MetricAverage, Treatment: "a", AtLeast: below}), "bound -1 of metric average"},
		{"a time of an average", requiring(Requirement{Metric: MetricAverage, Treatment: "a", AtLeast: one, By: 1}), "metric average with the time 1ns, which delivered alone has"},
		{"delivered without a time", requiring(Requirement{Metric: MetricDelivered, Treatment: "a", AtLeast: one}), "metric delivered with the time 0s"},
		{"a ratio to nothing", requiring(Requirement{Metric: MetricRatioTo, Treatment: "a", AtLeast: one}), `metric ratio_to with the reference ""`},
		{"a ratio to nobody", requiring(Requirement{Metric: MetricRatioTo, Treatment: "a", Reference: "b", AtLeast: one}), `treatment "b", which the sheet does not have`},
		{"a requirement of nobody", requiring(Requirement{Metric: MetricAverage, AtLeast: one}), `treatment "", which the sheet does not have`},
		{"a probe's metric of a treatment", requiring(Requirement{Metric: MetricLoss, Treatment: "a", AtMost: one}), `metric loss of probe ""`},
		{"a probe that is none", requiring(Requirement{Metric: MetricLoss, Probe: "a", From: client, AtMost: one}), `probe "a", which the sheet does not have`},
		{"a probe from nowhere", func(s *Sheet) {
			probed(s, Flow{Treatment: "voice", From: client, To: server})
			s.Require = []Requirement{{Entry: 1, Metric: MetricLoss, Probe: "voice", From: relay, AtMost: one}}
		}, `probe voice from the "relay", expected client or server`},
		{"negative size", func(s *Sheet) { s.Trials[0].Flows[0].SizeBytes = -1 }, "-1 bytes"},
		{"over the header's limit", func(s *Sheet) { s.Trials[0].Flows[0].SizeBytes = contract.MaxSize + 1 }, "bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sample()
			c.spoil(s)
			b, err := s.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Decode(b); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, expected one with %q", err, c.want)
			}
		})
	}
	for _, text := range []string{"", "null", "[]", `{"format":1,"surprise":2}`, "{} {}"} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// probed puts a probe beside the flows of the first trial.
func probed(s *Sheet, f Flow) {
	s.Treatments = append(s.Treatments, Treatment{Name: "voice", Protocol: "probe", Port: 5900, Probe: true, Options: map[string]any{}})
	s.Trials[0].Probes = []Flow{f}
}

// A probe from the server has its client where every probe has it, and needs the
// same listener.
func TestProbeFromServer(t *testing.T) {
	for _, f := range []Flow{{Treatment: "voice", From: client, To: server}, {Treatment: "voice", From: server, To: client}} {
		s := sample()
		probed(s, f)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if f.ClientAt() != client || f.ServerAt() != server || f.FromServer() != (f.From == server) {
			t.Errorf("from the %s: client at the %s, listener at the %s", f.From, f.ClientAt(), f.ServerAt())
		}
		for role, want := range map[radio.Role]bool{client: false, server: true} {
			has := slices.ContainsFunc(s.Needs(&s.Trials[0], role), func(l Listener) bool { return l.Treatment.Name == "voice" })
			if has != want {
				t.Errorf("from the %s: a listener at the %s: %t", f.From, role, has)
			}
		}
	}
}

func TestTransferID(t *testing.T) {
	seen := map[contract.TransferID]bool{}
	for trial := range 12 {
		for attempt := range 3 {
			for flow := range 12 {
				id := TransferID("run", trial, attempt, flow)
				if seen[id] {
					t.Fatalf("%d/%d/%d shares its identity", trial, attempt, flow)
				}
				seen[id] = true
			}
		}
	}
	// Part of the format: journals of different versions must agree.
	if got, want := TransferID("run", 1, 2, 3).String(), "7e43a666420331cb39ad607e2107e8ca"; got != want {
		t.Errorf("identity %s, expected %s", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	b, err := sample().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(b)
		if err != nil {
			return
		}
		// What is taken can be walked through, and written again as it was.
		for _, trial := range s.Trials {
			for _, fl := range trial.Flows {
				if s.Treatment(fl.Treatment) == nil {
					t.Fatal("a trial names a treatment that is not there")
				}
			}
		}
		once, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(once)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := again.Encode()
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("encoding is not stable: %v", err)
		}
	})
}

func TestCellWords(t *testing.T) {
	for want, c := range map[string]Cell{
		"":                  {Radio: "r"},
		"loss 0.1":          {Label: "loss 0.1"},
		"clean":             {Group: "clean"},
		"mobile · loss 0.1": {Group: "mobile", Label: "loss 0.1"},
	} {
		if got := c.Words(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
