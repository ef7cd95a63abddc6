package reporttest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/executor/stoprule"
	"linktrial/internal/radio"
	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
)

var began = time.Date(2026, 3, 14, 9, 26, 53, 0, time.FixedZone("field", 2*3600))

// Ptr points at a copy.
func Ptr[T any](v T) *T { return &v }

// Campaign makes a dataset of runs whose trials all succeeded; tests then spoil it.
func Campaign(runs ...report.Run) *report.Dataset {
	return &report.Dataset{Campaign: "c-20260314-1", Plan: "quickstart", Created: began, Runs: runs, Complete: true}
}

// NewRun makes a run of the given treatments (label, KB/s on average) and iterations.
func NewRun(id, radioName, radioTitle, topology, title string, sizeBytes int64, iterations int, treatments ...Treatment) report.Run {
	rng := rand.New(rand.NewPCG(1, uint64(len(id))+uint64(len(radioName))))
	s := &runsheet.Sheet{
		Format: runsheet.Format, Plan: "quickstart", PlanHash: "91ab", Order: "fixed", Seed: 20150817,
		Cell:     runsheet.Cell{Radio: radioName, Topology: topology, SizeBytes: sizeBytes},
		Radio:    radio.Profile{Name: radioName, Title: radioTitle},
		Topology: radio.Topology{Name: topology, Title: title},
		Network: &radio.Network{Medium: radio.MediumShared, Links: []radio.Link{
			{A: radio.RoleClient, B: radio.RoleRelay, RateBitsPerSecond: 1.5e6}, {A: radio.RoleRelay, B: radio.RoleServer, RateBitsPerSecond: 2e6},
		}},
		Limits: runsheet.Limits{Connect: 30 * time.Second, Transfer: 300 * time.Second, Attempts: 2},
	}
	r := report.Run{ID: id, State: "completed", Place: "emulated, real time", SheetHash: "5f1d3a", Sheet: s, Started: began, Ended: began.Add(time.Hour),
		Provenance: map[string]journal.Provenance{
			"server": {Host: "server", Kernel: "6.12", Sysctls: map[string]string{"net.ipv4.tcp_sack": "1", "net.ipv4.tcp_ecn": "2"}},
			"client": {Host: "client", Kernel: "6.12", Drivers: []journal.Driver{{Name: "tcp", Version: "1.0.0", Detail: map[string]string{"b": "2", "a": "1"}}}},
		},
		Clocks: map[string][]journal.ClockOffset{"client": {{When: "before", Offset: 3 * time.Millisecond, Error: time.Millisecond}}},
	}
	for i, t := range treatments {
		s.Treatments = append(s.Treatments, runsheet.Treatment{
			Name: t.Name, Label: t.Label, Protocol: t.Protocol, Port: 5000 + i, Missing: t.Missing, Options: map[string]any{"congestion": "cubic", "window": int64(10)},
		})
	}
	at := began
	for it := 1; it <= iterations; it++ {
		fade := 1 - 0.2*rng.Float64()
		for _, t := range treatments {
			if t.Missing != "" {
				continue
			}
			i := len(s.Trials)
			s.Trials = append(s.Trials, runsheet.Trial{Index: i, Iteration: it, Treatment: t.Name, ChannelSeed: uint64(it),
				Flows: []runsheet.Flow{{Treatment: t.Name, From: radio.RoleClient, To: radio.RoleServer, SizeBytes: sizeBytes}}})
			rate := t.KBps * 1024 * fade * (1 - 0.1*rng.Float64())
			elapsed := time.Duration(float64(sizeBytes) / rate * 1e9).Round(time.Microsecond)
			r.Trials = append(r.Trials, report.Trial{Index: i, Iteration: it, Treatment: t.Name, Verdict: journal.Succeeded, Attempts: []report.Attempt{{
				Attempt: 1, Verdict: journal.Succeeded, Started: at, SizeBytes: sizeBytes, Elapsed: elapsed, Connect: 180 * time.Millisecond,
				Duration: elapsed + 400*time.Millisecond, Ideal: (elapsed + 180*time.Millisecond) * 7 / 10, CodedBound: (elapsed + 180*time.Millisecond) * 3 / 4, Digest: fmt.Sprintf("%064x", it), Verified: true,
				Retransmits: Ptr(int64(it)), Radio: &report.RadioReport{SentPackets: 400, LostPackets: 3, BusyShare: 0.875},
			}}})
			at = at.Add(elapsed + 500*time.Millisecond)
		}
	}
	return r
}

// Treatment of a [NewRun].
type Treatment struct {
	Name, Label, Protocol string
	KBps                  float64 // on average
	Missing               string  // why it has no trials; empty: it has
}

// Treatments as breedy-2015 compares them.
var (
	Cubic = Treatment{"tcp-cubic", "TCP CUBIC", "tcp", 120, ""}
	BBR   = Treatment{"tcp-bbr", "TCP BBR", "tcp", 131, ""}
	SCTP  = Treatment{"sctp", "SCTP", "sctp", 96, ""}
	UDT   = Treatment{"udt", "UDT", "udt", 142, ""}
	Haul  = Treatment{"haul", "Haul (in the place of Mockets)", "haul", 0, "no driver of that name is installed"}
)

// Quickstart is a run without incidents.
func Quickstart() report.Run {
	return NewRun("r-1", "prc-117g-anw2c", "AN/PRC-117G, ANW2C", "vip-lot", "VIP Lot", 256<<10, 3, Cubic, BBR, SCTP, UDT)
}

// Compared is two campaigns: the second one has another option, a faster UDT, no SCTP,
// and a run of its own.
func Compared() *report.Dataset {
	faster, later := UDT, Campaign()
	faster.KBps = 240
	second := NewRun("r-second", "prc-117g-anw2c", "AN/PRC-117G, ANW2C", "vip-lot", "VIP Lot", 256<<10, 5, Cubic, BBR, faster)
	second.Sheet.Treatments[1].Options["congestion"] = "bbr"
	later.Campaign = "c-20260315-1"
	later.Runs = []report.Run{second, NewRun("r-other", "mpu4", "WaveRelay MPU4", "k-lot", "K Lot", 256<<10, 2, Cubic)}
	return report.Merge([]*report.Dataset{Campaign(Quickstart()), later})
}

// Stopped is a campaign of a run that its rule to stop by ended at its first look.
func Stopped() *report.Dataset {
	r := NewRun("r-stopped", "prc-117g-anw2c", "AN/PRC-117G, ANW2C", "vip-lot", "VIP Lot", 256<<10, 20, Cubic, UDT, SCTP)
	r.Sheet.Stop = &runsheet.Stop{Looks: []int{10, 15, 20}, Alpha: 0.05, Spending: stats.Pocock}
	times := stoprule.Times{}
	for i := range r.Trials {
		t := &r.Trials[i]
		times.Set(t.Treatment, t.Iteration, (t.Attempts[0].Connect + t.Attempts[0].Elapsed).Seconds())
	}
	r.Looks = []journal.Look{stoprule.Judge(r.Sheet, times, 10, nil)}
	for i := range r.Trials {
		if t := &r.Trials[i]; stoprule.NotNeeded(&r.Sheet.Trials[i], r.Looks) {
			t.Verdict, t.Attempts = journal.Aborted, nil
		}
	}
	return Campaign(r)
}

// Spoil gives a trial attempts that failed; with last set, the trial failed as a whole.
func Spoil(t *report.Trial, verdict journal.Verdict, reason, message string, last bool) {
	bad := report.Attempt{Attempt: len(t.Attempts), Verdict: verdict, Reason: reason, Message: message, Started: t.Attempts[0].Started,
		SizeBytes: t.Attempts[0].SizeBytes, Duration: 300 * time.Second, Log: "driver: gave up\n"}
	if last {
		t.Attempts[len(t.Attempts)-1] = bad
		bad.Attempt++
		t.Attempts[len(t.Attempts)-1].Attempt = len(t.Attempts)
		t.Verdict = verdict
		return
	}
	good := t.Attempts[len(t.Attempts)-1]
	good.Attempt++
	t.Attempts = append(t.Attempts[:len(t.Attempts)-1], bad, good)
}

// Eventful is a campaign in which all that a report can say occurs.
func Eventful() *report.Dataset {
	one := NewRun("r-1", "prc-117g-anw2c", "AN/PRC-117G, ANW2C", "vip-lot", "VIP Lot", 2048<<10, 10, Haul, Cubic, BBR, SCTP, UDT)
	Spoil(&one.Trials[3], journal.TimedOut, "transfer-timeout", "no acknowledgement within 300 s", true)
	Spoil(&one.Trials[7], journal.TimedOut, "transfer-timeout", "no acknowledgement within 300 s", false)
	Spoil(&one.Trials[6], journal.Failed, "exited", "the driver said \"what, now?\"\r\nand left, | & <gone> 100 %_\x1b[31m", false)
	one.Trials[9].Attempts[0].Verified = false
	one.Trials[0].Attempts[0].Telemetry = []report.Telemetry{
		{Node: "client", Role: "client", Source: "radio", Metric: "snr", Unit: "dB", Readings: 2, Minimum: 11.5, Mean: 12.25, Maximum: 13},
		{Node: "server", Role: "server", Source: "host \"power\"", Metric: "battery", Minimum: 0.81, Mean: 0.81, Maximum: 0.81},
	}
	trial, flow := 4, 0
	one.Breaches = []report.Breach{
		{At: one.Started, Node: "client", Role: "client", Treatment: "udt", Trial: &trial, Attempt: 1, Flow: &flow, Message: "did not exit within 2s of its last event", Log: "driver: waits\n"},
		{At: one.Ended, Node: "server", Role: "server", Treatment: "sctp", Message: "left behind, and Linktrial ended: sleep \"3600\" (process 7)\r\n"},
	}
	two := NewRun("r-2", "tw-400-tsm-e", "TW-400 CUB, TSM-E", "vip-lot", "VIP Lot", 2048<<10, 3, Haul, Cubic, BBR, SCTP, UDT)
	for i := range two.Trials {
		if two.Trials[i].Treatment == "udt" {
			Spoil(&two.Trials[i], journal.Failed, "connect-timeout", "no first byte", true)
		}
	}
	segments(&two)
	three := NewRun("r-3", "prc-117g-anw2c", "AN/PRC-117G, ANW2C", "k-lot", "K Lot", 1024<<10, 3, Haul, Cubic, BBR, SCTP, UDT)
	three.State, three.Message = "stopped", "the disk of node client is full"
	for i := range three.Trials[5:] {
		three.Trials[5+i].Attempts, three.Trials[5+i].Verdict = nil, ""
	}
	three.Trials[5].Attempts = []report.Attempt{{Attempt: 1, Started: began}}
	ds := Campaign(one, two, three)
	ds.Plan = "breedy-2015"
	ds.Complete = false
	ds.Published = []report.PublishedRow{
		{Topology: "vip-lot", Radio: "prc-117g-anw2c", Treatment: "haul", AvgKBps: 260.42, MaxKBps: 262.09, MinKBps: 257.51, SDKBps: 2.02, Source: "breedy-2015, Table 2 (Mockets)", N: 10},
		{Topology: "vip-lot", Radio: "prc-117g-anw2c", Treatment: "tcp-cubic", AvgKBps: 194.15, MaxKBps: 199.09, MinKBps: 180.00, SDKBps: 7.56, Source: "breedy-2015, Table 2", N: 10},
		{Topology: "vip-lot", Radio: "prc-117g-anw2c", Treatment: "sctp", AvgKBps: 157.01, MaxKBps: 161.67, MinKBps: 117.65, SDKBps: 13.84, Source: "breedy-2015, Table 2", N: 10},
		{Topology: "vip-lot", Radio: "prc-117g-anw2c", Treatment: "udt", AvgKBps: 154.43, MaxKBps: 196.15, MinKBps: 92.88, SDKBps: 28.11, Source: "breedy-2015, Table 2", N: 10},
		{Topology: "k-lot", Radio: "prc-117g-anw2c", Treatment: "udt", AvgKBps: 58.48, MaxKBps: 94.74, MinKBps: 16.32, SDKBps: 24.91, Source: "breedy-2015, Table 2", N: 10},
	}
	return ds
}

// segments gives the transfers over TCP of a run what such drivers report of their segments:
// each that was sent again had 1448 bytes, and round trips took longer with each iteration.
func segments(r *report.Run) {
	for i := range r.Trials {
		for k := range r.Trials[i].Attempts {
			a := &r.Trials[i].Attempts[k]
			if t := r.Sheet.Treatment(r.Trials[i].Treatment); t.Protocol != "tcp" || a.Retransmits == nil {
				continue
			}
			again := *a.Retransmits * 1448
			a.TransmittedBytes, a.RetransmittedBytes = Ptr(a.SizeBytes+24+again), &again
			a.RTTLeastUS, a.RTTMeanUS = Ptr(int64(180_000)), Ptr(270_000+90_000*float64(r.Trials[i].Iteration))
		}
	}
}

// Places is a campaign of four runs that differ in topology and radio alone, and in which UDT
// leads by more in one place than in another.
func Places() *report.Dataset {
	ds := Campaign()
	for i, lead := range []float64{1.1, 1.35, 1.2, 1.6} {
		faster := UDT
		faster.KBps = 131 * lead
		radioName := fmt.Sprintf("radio-%d", i%2)
		topology := fmt.Sprintf("place-%d", i/2)
		ds.Runs = append(ds.Runs, NewRun(fmt.Sprintf("r-place-%d", i), radioName, fmt.Sprintf("Radio %d", i%2), topology, fmt.Sprintf("Place %d", i/2), 256<<10, 4, Cubic, BBR, faster))
	}
	return ds
}
