package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/faultlog"
)

const year = 365 * 24 * time.Hour

// clocked is an auditor that has taken a journal of the client, a record a second from
// noon on; each is its type, what its time is off by, and its body.
type clocked struct {
	kind string
	off  time.Duration
	body any
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func takeAll(t *testing.T, sheet *runsheet.Sheet, verdict string, records []clocked) *auditor {
	t.Helper()
	run := &Run{State: "completed", Trials: []Trial{{Attempts: []Attempt{{Attempt: 1, Verdict: verdict}}}}}
	a := &auditor{run: run, sheet: sheet, report: &Report{Checks: newChecks()}, received: map[string][]reception{}, streams: map[stream]*streamState{}, controlled: map[string]int64{}}
	a.history.checks = a
	s := &source{node: "client", role: "client", unknown: map[string]int{}}
	a.sources = []*source{s}
	for i, r := range records {
		b, err := json.Marshal(r.body)
		if err != nil {
			t.Fatal(err)
		}
		s.records++
		a.addRecord(s, entry{seq: int64(i + 1), at: noon.Add(time.Duration(i)*time.Second + r.off), kind: r.kind, body: b})
	}
	return a
}

// Steps that a journal tells are taken off; other leaps back are findings. By the rule no
// attempt counts during which a clock stepped.
func TestClocks(t *testing.T) {
	started := journal.AttemptStarted{Attempt: 1, Treatment: "x", Transfers: []string{"t"}}
	ended := journal.AttemptEnded{Attempt: 1, Treatment: "x", Verdict: journal.Succeeded}
	begin := clocked{"run-started", 0, journal.RunStarted{Trials: 1, Boot: "one"}}
	step := func(off, by time.Duration) clocked {
		return clocked{"clock-stepped", off, journal.ClockStepped{By: by, Within: 500 * time.Millisecond}}
	}
	within := []clocked{begin, {"attempt-started", 0, started}, step(year, year), {"attempt-ended", year, ended}}
	for name, c := range map[string]struct {
		records []clocked
		rule    time.Duration
		verdict string
		want    string // in the one finding; empty: none
	}{
		"steps":                        {append(within[:4:4], step(year-time.Hour, -time.Hour), clocked{"connected", year - time.Hour, nil}), 0, "succeeded", ""},
		"not told":                     {[]clocked{begin, {"connected", -2 * time.Second, nil}}, 0, "", "its time is 1s before that of an earlier record"},
		"told by an old one":           {[]clocked{{"run-started", 0, journal.RunStarted{}}, {"connected", -year, nil}}, 0, "", ""},
		"another start":                {[]clocked{begin, {"run-resumed", -year, journal.RunStarted{Boot: "two"}}, {"connected", -year, nil}}, 0, "", ""},
		"another start, another clock": {[]clocked{begin, {"run-resumed", year, journal.RunStarted{Boot: "two"}}, {"clock-stepped", year, journal.ClockStepped{By: year, Reboot: true}}, {"connected", year, nil}}, 0, "", ""},
		"not told after another start": {[]clocked{begin, {"run-resumed", year, journal.RunStarted{Boot: "two"}}, {"clock-stepped", year, journal.ClockStepped{By: year, Reboot: true}}, {"connected", year - time.Hour, nil}}, 0, "", "and no step of the clock is told"},
		"the rule":                     {within, time.Second, "succeeded", "it counts as succeeded, and the clock of the client stepped by 8760h0m0s meanwhile (record 3 of client)"},
		"marked by the rule":           {within, time.Second, "invalid", ""},
		"less than the rule":           {[]clocked{begin, {"attempt-started", 0, started}, step(time.Second, time.Second), {"attempt-ended", time.Second, ended}}, time.Minute, "failed", ""},
		"at its end":                   {[]clocked{begin, {"attempt-started", 0, started}, {"attempt-ended", 0, ended}, step(year, year)}, time.Second, "failed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			sheet := &runsheet.Sheet{Trials: []runsheet.Trial{{Treatment: "x"}}, Limits: runsheet.Limits{Attempts: 1}}
			if c.rule > 0 {
				sheet.Valid = &runsheet.Valid{ClockStep: c.rule}
			}
			a := takeAll(t, sheet, c.verdict, c.records)
			a.checkClocks()
			got := ""
			for _, f := range a.check(Clocks).Findings {
				got += fmt.Sprintln(f.Message)
			}
			if strings.TrimSpace(got) == "" && c.want == "" {
				return
			}
			if !strings.Contains(got, c.want) || c.want == "" || strings.Count(got, "\n") != 1 {
				t.Errorf("findings:\n%sexpected: %s", got, c.want)
			}
		})
	}
}

// An attempt is found under a fault although the leading node's clock was a year ahead
// from the beginning, and stepped meanwhile.
func TestFaultUnderASteppedClock(t *testing.T) {
	a := takeAll(t, &runsheet.Sheet{Trials: []runsheet.Trial{{Treatment: "x"}}, Limits: runsheet.Limits{Attempts: 1}}, "failed", []clocked{
		{"run-started", year, journal.RunStarted{Boot: "one"}},
		{"clock-offset", year, journal.ClockOffset{Offset: -year, Error: time.Millisecond}},
		{"clock-stepped", year - time.Hour, journal.ClockStepped{By: -time.Hour}},
		{"attempt-started", year - time.Hour, journal.AttemptStarted{Attempt: 1, Treatment: "x", Transfers: []string{"t"}}},
		{"attempt-ended", year - time.Hour, journal.AttemptEnded{Attempt: 1, Treatment: "x", Verdict: journal.Failed}},
	})
	for from, findings := range map[time.Duration]int{3500 * time.Millisecond: 1, 10 * time.Second: 0} {
		a.run.Faults = []faultlog.Fault{{Number: 1, Kind: faultlog.Kill, Target: faultlog.Agent, Node: "server", Touches: true, From: noon.Add(from), To: noon.Add(from + time.Second)}}
		before := len(a.check(Faults).Findings)
		a.checkFaults()
		if got := len(a.check(Faults).Findings) - before; got != findings {
			t.Errorf("a fault %s after noon: %d findings, expected %d", from, got, findings)
		}
	}
}
