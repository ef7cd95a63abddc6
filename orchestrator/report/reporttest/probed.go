package reporttest

import (
	"math"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/protocols/contract"
)

// Probed is a campaign of three runs with a call beside each treatment and alone: on
// emulated radios, and on real ones whose clocks were compared, and were not.
func Probed() *report.Dataset {
	ds := Campaign()
	for i, clock := range []report.ProbeClock{
		report.OneClock,
		{Offset: 4e6, Uncertainty: 25e6},
		{Unknown: "the server's clock was not compared: no control link"},
	} {
		r := NewRun([]string{"r-lab", "r-field", "r-far"}[i], "mpu4", "WaveRelay MPU4", "flag-pole", "Flag Pole", 1<<20, 3, Cubic, BBR)
		if i > 0 {
			r.Place = "real radios"
		}
		r.ProbeClock = clock
		addCalls(&r)
		if i > 0 {
			addSearches(&r)
		}
		if i == 1 {
			addMessages(&r)
		}
		ds.Runs = append(ds.Runs, r)
	}
	return ds
}

// ProbedBothWays is a run of three iterations of TCP with a probe in both directions at a
// time alone after each, whose least delays are 40, 30 and 50 ms there and 20 ms back by one
// clock; the client's is a second ahead of the server's, which nobody compared.
func ProbedBothWays() *report.Dataset {
	ds := Campaign()
	r := NewRun("r-idle", "mpu4", "WaveRelay MPU4", "flag-pole", "Flag Pole", 1<<20, 3, Cubic)
	r.ProbeClock = report.ProbeClock{Unknown: "no control link"}
	for i := range r.Trials {
		a := r.Trials[i].Counted()
		a.RTTMeanUS, a.RTTLeastUS = Ptr(75_000.0), Ptr[int64](60_000)
	}
	s := r.Sheet
	s.Treatments = append(s.Treatments, runsheet.Treatment{Name: "idle", Label: "Small packets", Protocol: "probe", Probe: true, Port: 5100})
	there := runsheet.Flow{Treatment: "idle", From: radio.RoleClient, To: radio.RoleServer, Duration: 60e9}
	back := runsheet.Flow{Treatment: "idle", From: radio.RoleServer, To: radio.RoleClient, Duration: 60e9}
	for i, least := range []int64{40e6, 30e6, 50e6} {
		s.Trials = append(s.Trials, runsheet.Trial{Index: len(s.Trials), Iteration: i + 1, Treatment: "idle", Probes: []runsheet.Flow{there, back}})
		probe := func(f *runsheet.Flow, ns int64) report.Probe {
			return report.Probe{Treatment: "idle", From: f.From, To: f.To, Verdict: journal.Succeeded, Metrics: &contract.ProbeMetrics{Sent: 10, Received: 10, Delay: &contract.Delays{MinNS: ns, MeanNS: ns, P50NS: ns, P95NS: ns, P99NS: ns, MaxNS: ns}}}
		}
		r.Trials = append(r.Trials, report.Trial{Index: len(r.Trials), Iteration: i + 1, Treatment: "idle", Verdict: journal.Succeeded, Attempts: []report.Attempt{{Attempt: 1, Verdict: journal.Succeeded, Verified: true,
			Started: time.Date(2026, 3, 1, 12, i, 0, 0, time.UTC), Probes: []report.Probe{probe(&there, least-1e9), probe(&back, 20e6+1e9)}}}})
	}
	ds.Runs = []report.Run{r}
	return ds
}

// addCalls puts a call beside every trial of a run, and a trial of it alone after each iteration.
func addCalls(r *report.Run) {
	s := r.Sheet
	s.Treatments = append(s.Treatments, runsheet.Treatment{Name: "voice", Label: "Voice (G.711)", Protocol: "probe", Probe: true, DSCP: 46, Port: 5100, Options: map[string]any{"pattern": "voip-g711"}})
	call := runsheet.Flow{Treatment: "voice", From: radio.RoleClient, To: radio.RoleServer}
	trials, measured := s.Trials, r.Trials
	s.Trials, r.Trials = nil, nil
	add := func(spec runsheet.Trial, t report.Trial, load float64) {
		spec.Index, t.Index = len(s.Trials), len(s.Trials)
		p := call
		if len(spec.Flows) == 0 {
			p.Duration = 60e9
		}
		spec.Probes = []runsheet.Flow{p}
		t.Attempts = slices.Clone(t.Attempts)
		for i := range t.Attempts { // as the store has it beside probes
			t.Attempts[i].Ideal, t.Attempts[i].CodedBound = 0, 0
		}
		t.Attempts[len(t.Attempts)-1].Probes = []report.Probe{{Treatment: "voice", From: p.From, To: p.To, Verdict: journal.Succeeded, Elapsed: 60e9, Metrics: callMetrics(spec.Iteration, load)}}
		s.Trials, r.Trials = append(s.Trials, spec), append(r.Trials, t)
	}
	for i := range trials {
		load := 900.0
		if trials[i].Treatment == BBR.Name {
			load = 250
		}
		add(trials[i], measured[i], load)
		if i+1 == len(trials) || trials[i+1].Iteration != trials[i].Iteration {
			add(runsheet.Trial{Iteration: trials[i].Iteration, Treatment: "voice", ChannelSeed: trials[i].ChannelSeed},
				report.Trial{Iteration: trials[i].Iteration, Treatment: "voice", Verdict: journal.Succeeded, Attempts: []report.Attempt{{Attempt: 1, Verdict: journal.Succeeded, Elapsed: 60e9, Verified: true}}}, 3)
		}
	}
}

// addSearches adds a search for the capacity in each iteration; the last one's time was up.
func addSearches(r *report.Run) {
	s := r.Sheet
	s.Treatments = append(s.Treatments, runsheet.Treatment{Name: "capacity", Label: "Capacity", Protocol: "probe", Probe: true, Port: 5101, Options: map[string]any{"pattern": "capacity"}})
	last := s.Iterations()
	for iteration := 1; iteration <= last; iteration++ {
		p := runsheet.Flow{Treatment: "capacity", From: radio.RoleClient, To: radio.RoleServer, Duration: 20e9}
		s.Trials = append(s.Trials, runsheet.Trial{Index: len(s.Trials), Iteration: iteration, Treatment: "capacity", Probes: []runsheet.Flow{p}})
		end := contract.CapacityFound
		if iteration == last {
			end = contract.CapacityTime
		}
		n := int64(iteration)
		m := callMetrics(iteration, 3)
		m.Capacity = &contract.Capacity{MaximumBPS: 1_900_000 + 1000*n, MeanBPS: 1_890_000, PayloadBPS: 1_860_000, IntervalNS: 1e9, Intervals: 5, RateBPS: 1_900_000, HighBPS: 1_915_000,
			BottleneckBPS: 1_908_000, PacketBytes: 1500, PayloadBytes: 1472, LargestPayloadBytes: 1472, HeldNS: 5e9, HeldSent: 791, HeldReceived: 790 - n, Steps: 6, SearchNS: 9e9, End: end,
			HeldDelay: &contract.Delays{MinNS: 72.5e6, MeanNS: 80e6, P50NS: 79e6, P95NS: 90e6, P99NS: 95e6, MaxNS: 99e6}}
		r.Trials = append(r.Trials, report.Trial{Index: len(r.Trials), Iteration: iteration, Treatment: "capacity", Verdict: journal.Succeeded, Attempts: []report.Attempt{
			{Attempt: 1, Verdict: journal.Succeeded, Elapsed: 17e9, Verified: true, Probes: []report.Probe{{Treatment: "capacity", From: p.From, To: p.To, Verdict: journal.Succeeded, Elapsed: 17e9, Metrics: m}}}}})
	}
}

// addMessages adds a trial of messages of two sizes, of which the larger ones are lost.
func addMessages(r *report.Run) {
	s := r.Sheet
	s.Treatments = append(s.Treatments, runsheet.Treatment{Name: "messages", Label: "Messages", Protocol: "probe", Probe: true, Port: 5102, Options: map[string]any{"pattern": "messages"}})
	p := runsheet.Flow{Treatment: "messages", From: radio.RoleClient, To: radio.RoleServer, Duration: 20e9}
	s.Trials = append(s.Trials, runsheet.Trial{Index: len(s.Trials), Iteration: 1, Treatment: "messages", Probes: []runsheet.Flow{p}})
	m := callMetrics(1, 3)
	m.Messages = []contract.MessagesOfSize{
		{Bytes: 20, Packets: 1, Sent: 80, Delivered: 78, Time: &contract.Delays{MinNS: 72.5e6, MeanNS: 80e6, P50NS: 79e6, P95NS: 90e6, P99NS: 95e6, MaxNS: 99e6}},
		{Bytes: 10240, Packets: 9, Sent: 3, Delivered: 0},
	}
	r.Trials = append(r.Trials, report.Trial{Index: len(r.Trials), Iteration: 1, Treatment: "messages", Verdict: journal.Succeeded, Attempts: []report.Attempt{
		{Attempt: 1, Verdict: journal.Succeeded, Elapsed: 21e9, Verified: true, Probes: []report.Probe{{Treatment: "messages", From: p.From, To: p.To, Verdict: journal.Succeeded, Elapsed: 21e9, Metrics: m}}}}})
}

// callMetrics are those of a call whose queueing delay is exponential, with a mean in ms.
func callMetrics(iteration int, load float64) *contract.ProbeMetrics {
	f := &contract.ProbeMetrics{Sent: 3000, Received: 2970, Lost: 30, SentBytes: 3000 * 172, ReceivedBytes: 2970 * 172, LossBursts: 20, LongestLossBurst: 4,
		JitterMeanNS: int64(load * 1e4), JitterMaxNS: int64(load * 1e5), Delay: &contract.Delays{}}
	d := f.Delay
	for p := range contract.DelayPercentiles {
		share := min(float64(p)/100, 0.9995)
		ms := 72.5 - load*float64(iteration)*math.Log(1-share)
		d.PercentilesNS = append(d.PercentilesNS, int64(math.Round(ms*1e3))*1e3)
	}
	d.MinNS, d.P50NS, d.P95NS, d.P99NS, d.MaxNS = d.PercentilesNS[0], d.PercentilesNS[50], d.PercentilesNS[95], d.PercentilesNS[99], d.PercentilesNS[100]
	d.MeanNS = (d.MinNS + d.P50NS) / 2
	if load > 800 { // as over DCCP
		f.Unsent = 500
	}
	return f
}
