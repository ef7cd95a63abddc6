package measure

import (
	"fmt"
	"strings"

	"linktrial/internal/radio"
	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
)

// Way is a direction: there is from client to server.
type Way int

const (
	There Way = iota
	Back
)

func (w Way) String() string {
	if w == Back {
		return "server → client"
	}
	return "client → server"
}

func wayOf(from radio.Role) Way {
	if from == radio.RoleServer {
		return Back
	}
	return There
}

// Values are what was measured of a link. What is nil was not measured.
type Values struct {
	Capacity, Idle, Messages, Voice [2]*report.ProbeRow // by way
	Loaded                          []report.ProbeRow   // constant probes beside transfers
	Transfers                       []report.Row
	stalled                         map[string]stalled // by treatment
	// ClocksUnknown is why one-way delays are not known.
	ClocksUnknown string
	Partial       bool // a run has not ended, or was aborted
	Running       bool // the newest part has not ended
	Place         string
	Radio         string // for people
}

// ValuesOf reads them from the runs of a measurement and their tables, the search's first.
func ValuesOf(tables []report.RunTable, runs []report.Run) Values {
	v := Values{stalled: stalledOf(runs)}
	for i := range tables {
		t := &tables[i]
		v.Partial = v.Partial || t.Partial
		if v.Place, v.Radio = t.Place, t.RadioTitle; t.Place == radio.Unnamed {
			v.Radio = radio.Unnamed // the plan's is a label
		}
		if t.ProbeClock != nil && t.ProbeClock.Unknown != "" {
			v.ClocksUnknown = t.ProbeClock.Unknown
		}
		for k := range t.Probes {
			v.add(&t.Probes[k])
		}
		for _, r := range t.Rows {
			if r.Treatment == tcp || r.Treatment == haul {
				v.Transfers = append(v.Transfers, r)
			}
		}
	}
	return v
}

func (v *Values) add(p *report.ProbeRow) {
	w := wayOf(p.From)
	switch {
	case p.Beside != "":
		if p.Probe == idle {
			v.Loaded = append(v.Loaded, *p)
		}
	case p.Probe == idle:
		v.Idle[w] = p
	case p.Probe == capacityThere || p.Probe == capacityBack:
		v.Capacity[w] = p
	case p.Probe == messages || p.Probe == messagesThere || p.Probe == messagesBack:
		v.Messages[w] = p
	case strings.HasPrefix(p.Probe, "voice-"):
		v.Voice[w] = p
	}
}

// FoundBPS is the lower of what the two ways carried over the whole time held, in bit/s, by
// which the rest is chosen: the capacity itself is above that by chance where packets are
// lost. False: of at least one way nothing was found.
func (v *Values) FoundBPS() (float64, bool) {
	least := 0.0
	for _, p := range v.Capacity {
		if p == nil || p.Capacity == nil || p.Capacity.MeanBPS == nil {
			return 0, false
		}
		if least == 0 || *p.Capacity.MeanBPS < least {
			least = *p.Capacity.MeanBPS
		}
	}
	return least, true
}

// codecOf is the codec of a probe, by its treatment.
func codecOf(probe string) (stats.Codec, string) {
	if probe == voiceG711 {
		return stats.G711, "G.711"
	}
	return stats.G729A, "G.729"
}

// before is why a trial has no values that was not carried out, for people.
func (v *Values) before() string {
	if v.Running {
		return "not yet"
	}
	return "the run ended before it"
}

// whyNot is why a probe has no values, for people.
func (v *Values) whyNot(p *report.ProbeRow) string {
	switch {
	case p == nil:
		return "it was not part of the plan"
	case len(p.Failures) > 0:
		f := p.Failures[0]
		if f.Reason == "" {
			return "the probe ended as " + string(f.Verdict)
		}
		return fmt.Sprintf("the probe ended as %s: %s", f.Verdict, f.Reason)
	case p.Measured == 0:
		return v.before()
	}
	return "no packet arrived"
}
