package measure

import (
	"fmt"
	"math"

	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
)

// Outcome is what is said of a use.
type Outcome string

const (
	Yes       Outcome = "yes"
	No        Outcome = "no"
	Undecided Outcome = "undecided"
)

// Thresholds are what a link must reach for each use.
type Thresholds struct {
	// VoiceMOS is at least the quality of each direction. 3.6 is R = 70 (ITU-T G.107,
	// annex B), below which many users are dissatisfied (G.109).
	VoiceMOS float64
	// VoiceDelayMS is at most the 95th percentile of the one-way delay: 400 ms, by G.114.
	VoiceDelayMS float64
	// ChatLoss and ChatDelayMS bound small packets and messages of [chatMessage]: the share
	// lost, and the 95th percentile of the one-way delay. Ours: three copies of a message nearly always have one that
	// arrives, and a position is that old at most.
	ChatLoss, ChatDelayMS float64
	// A picture and a file of so many bytes take at most so many seconds. Ours.
	PictureBytes, PictureSeconds float64
	FileBytes, FileSeconds       float64
}

// Defaults are the thresholds unless others are given.
var Defaults = Thresholds{VoiceMOS: 3.6, VoiceDelayMS: 400, ChatLoss: 0.05, ChatDelayMS: 5000,
	PictureBytes: 100 << 10, PictureSeconds: 60, FileBytes: 10 << 20, FileSeconds: 600}

// Check is one metric held against its threshold.
type Check struct {
	Metric, Unit string
	Way          string // empty: of both
	// Value is what was measured, Low and High bound it; NaN: not known. A High of +Inf: only
	// Low is known, which is +Inf where nothing was delivered.
	Value, Low, High float64
	Threshold        float64
	AtLeast          bool // the value must be at least the threshold; else at most
	Source           string
	Outcome          Outcome
	Note             string // what to know of the value
}

// decide is yes where the whole interval is on the good side of the threshold, no where none
// of it is.
func (c Check) decide() Check {
	good := func(x float64) bool {
		if c.AtLeast {
			return x >= c.Threshold
		}
		return x <= c.Threshold
	}
	switch {
	case math.IsNaN(c.Low) || math.IsNaN(c.High):
		c.Outcome = Undecided
	case good(c.Low) && good(c.High):
		c.Outcome = Yes
	case !good(c.Low) && !good(c.High):
		c.Outcome = No
	default:
		c.Outcome = Undecided
	}
	return c
}

// Use is what a link may be good enough for.
type Use struct {
	Name    string // voice, chat and positions, chat while a file is sent, pictures, files
	Outcome Outcome
	Checks  []Check
	// NotMeasured is what the judgement lacks, in sentences.
	NotMeasured []string
}

// end makes the outcome: no where a check fails, undecided where one is or where something
// was not measured.
func (u Use) end() Use {
	u.Outcome = Yes
	if len(u.NotMeasured) > 0 || len(u.Checks) == 0 {
		u.Outcome = Undecided
	}
	for _, c := range u.Checks {
		if c.Outcome == No {
			u.Outcome = No
			return u
		}
		if c.Outcome == Undecided {
			u.Outcome = Undecided
		}
	}
	return u
}

func (u *Use) lacks(format string, args ...any) {
	u.NotMeasured = append(u.NotMeasured, fmt.Sprintf(format, args...))
}

const (
	ours = "ours"
	g107 = "ITU-T G.107"
	g114 = "ITU-T G.114"
)

// Judge is for what a link is good enough by a part of its measurement. A [Track] has no
// transfers, and so nothing to say of pictures and files.
func Judge(v *Values, part Part, t Thresholds) []Use {
	light := []Use{judgeVoice(v, t), judgeChat(v, t)}
	if part == Track {
		return light
	}
	return []Use{
		light[0], light[1], judgeChatLoaded(v, t),
		judgeBulk(v, "pictures", t.PictureBytes, t.PictureSeconds),
		judgeBulk(v, "files", t.FileBytes, t.FileSeconds),
	}
}

// capacityError bounds what a search is wrong by (docs/probes.md, Accuracy): two hops that
// share a medium and lose packets are the worst.
const capacityError = 0.06

func judgeVoice(v *Values, t Thresholds) Use {
	u := Use{Name: "voice"}
	for w, p := range v.Voice {
		way := Way(w)
		if p == nil {
			u.voiceRoom(v, way)
			continue
		}
		if p.Received == 0 || p.DelayP95MS == nil {
			u.lacks("Voice %s: %s.", way, v.whyNot(p))
			continue
		}
		if p.UncertaintyMS == nil || p.MOS == nil {
			u.lacks("Quality and delay of voice %s: the nodes' clocks were not compared (%s).", way, v.ClocksUnknown)
			continue
		}
		u.Checks = append(u.Checks, mosCheck(p, way, t.VoiceMOS), Check{Metric: "delay, 95 % of packets", Unit: "ms", Way: way.String(), Value: *p.DelayP95MS,
			Low: *p.DelayP95MS - *p.UncertaintyMS, High: *p.DelayP95MS + *p.UncertaintyMS, Threshold: t.VoiceDelayMS, Source: g114}.decide())
	}
	return u.end()
}

// voiceRoom judges a way on which no speech was sent by the capacity that speech takes.
func (u *Use) voiceRoom(v *Values, way Way) {
	c := v.Capacity[way]
	if c == nil || c.Capacity == nil || c.Capacity.MaximumBPS == nil {
		u.lacks("Voice %s: no speech was sent, and no capacity was found.", way)
		return
	}
	bps := *c.Capacity.MaximumBPS
	x := Check{Metric: "capacity", Unit: "kbit/s", Way: way.String(), Value: bps / 1e3, Low: bps / 1e3 * (1 - capacityError), High: bps / 1e3 * (1 + capacityError),
		Threshold: g729BPS / 1e3, AtLeast: true, Source: "G.729 with headers of IP, UDP and RTP"}.decide()
	if x.Outcome == Yes { // there would be room, and nothing says how it sounds
		u.lacks("Voice %s: it was not sent.", way)
	}
	u.Checks = append(u.Checks, x)
}

// mosCheck bounds the quality by the clocks' uncertainty and by Wilson's interval of the
// losses, which is too narrow where they come in bursts.
func mosCheck(p *report.ProbeRow, way Way, least float64) Check {
	codec, name := codecOf(p.Probe)
	loss := stats.Wilson(int(p.Lost), int(p.Sent), 0.95)
	at := func(share, add float64) float64 {
		call := stats.Call{Loss: share}
		for _, ms := range p.PercentilesMS {
			call.Percentiles = append(call.Percentiles, ms+add)
		}
		if p.LossBursts > 0 {
			call.MeanBurst = float64(p.Lost) / float64(p.LossBursts)
		}
		return codec.Quality(call).MOS
	}
	return Check{Metric: "quality of " + name, Unit: "MOS", Way: way.String(), Value: *p.MOS,
		Low: at(loss.High, *p.UncertaintyMS), High: at(loss.Low, -*p.UncertaintyMS), Threshold: least, AtLeast: true, Source: g107}.decide()
}

// bulkError is how far another transfer's time is taken to lie from that of the one measured,
// as a share. Ours: one transfer tells nothing of how much they differ.
const bulkError = 0.1

// judgeBulk reckons how long so many bytes take at the throughput of the better transfer,
// client to server. Where time limits ended all of them, what they delivered can still show
// that it takes too long.
func judgeBulk(v *Values, name string, bytes, most float64) Use {
	u := Use{Name: name}
	best := bestTransfer(v.Transfers)
	if best == nil {
		if c, ok := v.stalledCheck(bytes, most); ok && c.Outcome == No {
			u.Checks = append(u.Checks, c)
			return u.end()
		}
		if len(v.Transfers) == 0 {
			u.lacks("Transfers: %s.", v.before())
		}
		for _, r := range v.Transfers {
			u.lacks("Transfer of %s: %s.", r.Label, v.transferProblem(&r))
		}
		return u.end()
	}
	seconds := bytes / (*best.AverageKBps * 1024)
	u.Checks = append(u.Checks, Check{Metric: fmt.Sprintf("time of %s", sizeText(bytes)), Unit: "s", Way: There.String(), Value: seconds, Low: seconds * (1 - bulkError), High: seconds * (1 + bulkError), Threshold: most, Source: ours,
		Note: fmt.Sprintf("at the %s of %s, a single transfer", Quantity(*best.AverageKBps, "KB/s"), best.Label)}.decide())
	return u.end()
}

func bestTransfer(rows []report.Row) (best *report.Row) {
	for i := range rows {
		r := &rows[i]
		if r.Valid > 0 && r.AverageKBps != nil && *r.AverageKBps > 0 && (best == nil || *r.AverageKBps > *best.AverageKBps) {
			best = r
		}
	}
	return best
}

func (v *Values) transferProblem(r *report.Row) string {
	switch {
	case r.Missing != "":
		return r.Missing
	case len(r.Failures) > 0 && r.Failures[0].Reason != "":
		return fmt.Sprintf("%s: %s", r.Failures[0].Verdict, r.Failures[0].Reason)
	case len(r.Failures) > 0:
		return string(r.Failures[0].Verdict)
	}
	return v.before()
}

func sizeText(bytes float64) string {
	if bytes >= 1<<20 {
		return fmt.Sprintf("%.4g MiB", bytes/(1<<20))
	}
	if bytes >= 1<<10 {
		return fmt.Sprintf("%.4g KiB", bytes/(1<<10))
	}
	return fmt.Sprintf("%g B", bytes)
}
