package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// probed is a run of one transfer with a probe beside it, in each of two
// iterations, and of the probe alone.
func probed(clock ProbeClock) *Run {
	s := &runsheet.Sheet{Treatments: []runsheet.Treatment{{Name: "cubic", Label: "TCP CUBIC"}, {Name: "voice", Label: "Voice", Probe: true, DSCP: 46}}}
	r := &Run{ID: "r", State: "completed", Place: journal.PlaceEmulated, Sheet: s, ProbeClock: clock}
	values := func(ms int64, lost int64) *contract.ProbeMetrics {
		d := ms * 1e6
		return &contract.ProbeMetrics{Sent: 100, Received: 100 - lost, Lost: lost, LongestLossBurst: lost, JitterMeanNS: 1e6, JitterMaxNS: 2e6,
			Delay: &contract.Delays{MinNS: d, MeanNS: 2 * d, P50NS: 2 * d, P95NS: 3 * d, P99NS: 4 * d, MaxNS: 5 * d}}
	}
	for i := range 4 {
		name, flows := "cubic", []runsheet.Flow{{Treatment: "cubic", SizeBytes: 1000}}
		a := Attempt{Attempt: 1, Verdict: journal.Succeeded, SizeBytes: 1000, Elapsed: time.Second, Verified: true,
			Probes: []Probe{{Treatment: "voice", Verdict: journal.Succeeded, Metrics: values(int64(10*(i+1)), int64(i))}}}
		if i%2 == 1 {
			name, flows = "voice", nil
			a.SizeBytes = 0
		}
		s.Trials = append(s.Trials, runsheet.Trial{Index: i, Iteration: 1 + i/2, Treatment: name, Flows: flows, Probes: []runsheet.Flow{{Treatment: "voice"}}})
		r.Trials = append(r.Trials, Trial{Index: i, Iteration: 1 + i/2, Treatment: name, Verdict: journal.Succeeded, Attempts: []Attempt{a}})
	}
	return r
}

// TestProbesAreNoTreatments: they have rows of their own, and are in no row of those
// that are compared.
func TestProbesAreNoTreatments(t *testing.T) {
	r := probed(OneClock)
	// The second transfer fails, and the third attempt's probe.
	r.Trials[2].Attempts[0].Verdict, r.Trials[2].Attempts[0].Connect = journal.Failed, time.Millisecond
	r.Trials[3].Attempts[0].Probes[0].Verdict, r.Trials[3].Attempts[0].Probes[0].Reason = journal.Failed, "reset"
	v := Analyse(&Dataset{Runs: []Run{*r}}, Options{})
	table := v.Tables[0]
	if len(table.Rows) != 1 || table.Rows[0].Treatment != "cubic" || table.Reference != "cubic" || table.Rows[0].Valid != 1 {
		t.Fatalf("rows %+v", table.Rows)
	}
	if len(table.Probes) != 2 || table.Partial {
		t.Fatalf("probes %+v", table.Probes)
	}
	alone, beside := table.Probes[0], table.Probes[1]
	if alone.Beside != "" || alone.Measured != 1 || alone.Trials != 2 || len(alone.Failures) != 1 || alone.Failures[0] != (Failure{journal.Failed, "reset", 1}) || alone.DSCP != 46 {
		t.Errorf("alone: %+v", alone)
	}
	// Of 10 and 30 ms: the least, the mean of the means, the longest. A transfer
	// that failed takes nothing from the probe beside it.
	if beside.BesideLabel != "TCP CUBIC" || beside.Measured != 2 || beside.FailedTransfers != 1 || *beside.DelayMinMS != 10 || *beside.DelayMeanMS != 40 ||
		*beside.DelayP95MS != 60 || *beside.DelayMaxMS != 150 || beside.Lost != 2 || *beside.LossShare != 0.01 || *beside.UncertaintyMS != 0 {
		t.Errorf("beside: %+v", beside)
	}
	if got := table.ProbeCertainty(); got != "Both ends have one clock." {
		t.Error(got)
	}
}

// TestProbesBothWays: each direction has rows of its own, with its own sign of the
// clocks' offset, and names that tell them apart.
func TestProbesBothWays(t *testing.T) {
	r := probed(ProbeClock{Offset: 5 * time.Millisecond})
	for i := range r.Sheet.Trials {
		spec, a := &r.Sheet.Trials[i], &r.Trials[i].Attempts[0]
		spec.Probes = []runsheet.Flow{
			{Treatment: "voice", From: radio.RoleClient, To: radio.RoleServer}, {Treatment: "voice", From: radio.RoleServer, To: radio.RoleClient}}
		a.Probes = append(a.Probes, a.Probes[0])
	}
	rows := Analyse(&Dataset{Runs: []Run{*r}}, Options{}).Tables[0].Probes
	var names []string
	for i := range rows {
		names = append(names, fmt.Sprintf("%s %q %.0f", rows[i].Label, rows[i].Beside, *rows[i].DelayMinMS))
	}
	want := []string{`Voice, client → server "" 25`, `Voice, client → server "cubic" 15`, `Voice, server → client "" 15`, `Voice, server → client "cubic" 5`}
	if !slices.Equal(names, want) {
		t.Errorf("rows %q, expected %q", names, want)
	}
	if of := r.AttemptProbes(0, 1).Probes; len(of) != 2 || of[0].From != radio.RoleClient || of[1].From != radio.RoleServer || *of[1].DelayMinMS != 5 {
		t.Errorf("of one attempt %+v", of)
	}
}

func TestClocksOfProbes(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	// The client's clock is 100 ms behind the orchestrator's, the server's 20 to 24 ms ahead.
	client := []journal.ClockOffset{{Offset: ms(100), Error: ms(2)}, {Offset: ms(100), Error: ms(1)}}
	server := []journal.ClockOffset{{Offset: ms(-20), Error: ms(1)}, {Offset: ms(-24), Error: ms(1)}}
	c := CompareClocks(client, server)
	if c.Offset != ms(-122) || c.Uncertainty != ms(5) || c.Shared || c.Unknown != "" {
		t.Errorf("%+v", c)
	}
	// Measured 180 ms, of which 122 are the clocks'.
	if d := c.Correct(&contract.Delays{MinNS: 180e6}); d.Min != 58 {
		t.Errorf("corrected to %f ms", d.Min)
	}
	// The same two clocks the other way round.
	if d := c.Of(radio.RoleServer).Correct(&contract.Delays{MinNS: -64e6}); d.Min != 58 {
		t.Errorf("from the server corrected to %f ms", d.Min)
	}
	if c.Of(radio.RoleClient) != c {
		t.Errorf("from the client %+v", c.Of(radio.RoleClient))
	}
	r := probed(CompareClocks(client, []journal.ClockOffset{{Unknown: "no control link"}}))
	row := Analyse(&Dataset{Runs: []Run{*r}}, Options{}).Tables[0]
	if p := row.Probes[0]; *p.DelayMinMS != 0 || *p.DelayMaxMS != 160 || p.UncertaintyMS != nil {
		t.Errorf("clocks that were not compared: %+v", p)
	}
	if got := row.ProbeCertainty(); !strings.Contains(got, "the server's clock was not compared: no control link") {
		t.Error(got)
	}
}

// TestDistributionOfProbes: that of several trials is that of all their packets, and
// a driver without percentiles leaves it out.
func TestDistributionOfProbes(t *testing.T) {
	r := probed(OneClock)
	for i, steps := range map[int][2]int64{0: {10, 20}, 2: {30, 40}} { // 100 and 98 packets beside the transfer, half of each
		d := r.Trials[i].Attempts[0].Probes[0].Metrics.Delay
		d.PercentilesNS = make([]int64, contract.DelayPercentiles)
		for p := range d.PercentilesNS {
			d.PercentilesNS[p] = steps[min(p/51, 1)] * 1e6
		}
	}
	rows := Analyse(&Dataset{Runs: []Run{*r}}, Options{}).Tables[0].Probes
	if rows[0].PercentilesMS != nil {
		t.Error("a distribution of a probe alone that has no percentiles")
	}
	p := rows[1].PercentilesMS
	if len(p) != contract.DelayPercentiles {
		t.Fatalf("%d percentiles", len(p))
	}
	// 50, 50, 49 and 49 of 198.
	for at, want := range map[int]float64{1: 10, 25: 10, 26: 20, 50: 20, 51: 30, 75: 30, 76: 40, 100: 40} {
		if p[at] != want {
			t.Errorf("percentile %d is %g ms, expected %g", at, p[at], want)
		}
	}
}

// TestUnsentIsNoLoss: what the congestion control did not let go is in no share.
func TestUnsentIsNoLoss(t *testing.T) {
	r := probed(OneClock)
	f := r.Trials[0].Attempts[0].Probes[0].Metrics
	f.Unsent, f.ProcessTimes = 300, true
	table := Analyse(&Dataset{Runs: []Run{*r}}, Options{}).Tables[0]
	if p := table.Probes[1]; p.Offered != 500 || p.Unsent != 300 || p.Sent != 200 || p.Lost != 2 || *p.LossShare != 0.01 || !p.ProcessTimes {
		t.Errorf("%+v", p)
	}
	if got := table.ProbeCertainty(); !strings.HasPrefix(got, "Both ends have one clock. Packets of Voice arrived when the driver got them") {
		t.Error(got)
	}
}

// TestNoIdealBesideProbes: emulated radios have a reason for it; real ones never have
// an Ideal, and what a time bounds has none anyway.
func TestNoIdealBesideProbes(t *testing.T) {
	said := func(change func(*Run)) string {
		r := probed(OneClock)
		change(r)
		return Analyse(&Dataset{Runs: []Run{*r}}, Options{}).Tables[0].BoundsUnknown
	}
	if got := said(func(*Run) {}); !strings.Contains(got, "do not contain the load of the probes") {
		t.Errorf("emulated: %q", got)
	}
	for name, change := range map[string]func(*Run){
		"real radios": func(r *Run) { r.Place = "field" },
		"no probes beside transfers": func(r *Run) {
			for i := range r.Sheet.Trials {
				if len(r.Sheet.Trials[i].Flows) > 0 {
					r.Sheet.Trials[i].Probes = nil
				}
			}
		},
		"bounded by a time": func(r *Run) {
			for i := range r.Sheet.Trials {
				for k := range r.Sheet.Trials[i].Flows {
					r.Sheet.Trials[i].Flows[k].Duration = time.Second
				}
			}
		},
	} {
		if got := said(change); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestMessages: messages of all trials count together, times are by one clock, and without one
// above the least delay of the probe.
func TestMessages(t *testing.T) {
	for _, x := range []struct {
		clock         ProbeClock
		least, median float64
	}{{OneClock, 40, 62.5}, {ProbeClock{Offset: 5e6}, 45, 67.5}, {ProbeClock{Unknown: "not compared"}, 20, 32.5}} {
		r := probed(x.clock)
		message := func(sent, delivered, ms int64) []contract.MessagesOfSize {
			m := contract.MessagesOfSize{Bytes: 1024, Packets: 1, Sent: sent, Delivered: delivered}
			if delivered > 0 {
				d := ms * 1e6
				m.Time = &contract.Delays{MinNS: d, MeanNS: d, P50NS: d + 5e6, P95NS: d + 10e6, P99NS: d + 10e6, MaxNS: d + 10e6}
			}
			return []contract.MessagesOfSize{{Bytes: 20, Packets: 1}, m}
		}
		// The least delays of these trials of the probe alone are 20 and 40 ms.
		r.Trials[1].Attempts[0].Probes[0].Metrics.Messages = message(60, 60, 40)
		r.Trials[3].Attempts[0].Probes[0].Metrics.Messages = message(40, 30, 75)
		rows := Analyse(&Dataset{Runs: []Run{*r}}, Options{}).Tables[0].Probes
		got := rows[0].Messages
		if len(got) != 2 || len(rows[1].Messages) != 0 {
			t.Fatalf("%+v", rows)
		}
		if none := got[0]; none.Bytes != 20 || none.Sent != 0 || none.DeliveredShare != nil || none.TimeP50MS != nil {
			t.Errorf("%+v", none)
		}
		m := got[1]
		if m.Bytes != 1024 || m.Sent != 100 || m.Delivered != 90 || *m.DeliveredShare != 0.9 || *m.TimeMinMS != x.least || *m.TimeP50MS != x.median {
			t.Errorf("%+v, least %g, median %g; expected %g and %g", m, *m.TimeMinMS, *m.TimeP50MS, x.least, x.median)
		}
		// An import can say what no driver may.
		r.Trials[1].Attempts[0].Probes[0].Metrics.Messages = message(60, 200, 40)
		if m := Analyse(&Dataset{Runs: []Run{*r}}, Options{}).Tables[0].Probes[0].Messages[1]; m.DeliveredCI != nil {
			t.Errorf("more delivered than sent: %+v", m)
		}
		// Wilson's interval of 90 of 100.
		if c := m.DeliveredCI; math.Abs(c.Low-0.8256) > 1e-4 || math.Abs(c.High-0.9448) > 1e-4 {
			t.Errorf("%+v", c)
		}
	}
}
