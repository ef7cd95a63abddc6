package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
)

// An attempt that breaks a rule of validity, whether it succeeded or failed, is marked as
// invalid with the rule and both values. What cannot be decided is kept with the attempt,
// which counts.

const (
	// readingsLate is how long after an attempt, by its journal, a node may still read a
	// source for the first time since then: sources are read every few seconds, those
	// that do not answer less often.
	readingsLate = 15 * time.Second
	// unwatchedGap is the shortest time without a watch that is reported: one record
	// follows the other at once.
	unwatchedGap = 100 * time.Millisecond
	maxUndecided = 4096 // bytes
)

// Run is what is known of a run whose plan has rules, or which has real radios.
type Run struct {
	Sheet   *runsheet.Sheet
	Nodes   []*Node  // those that take part
	Records []Record // of listeners that are ready; only needed where nodes count what passes their radios ([Run.Counts])
}

// Node is what one node watched, as far as it was delivered.
type Node struct {
	Role    radio.Role
	Watched []Watched // in the order of its journal
	Newest  time.Time // of its journal's newest record, by the orchestrator's clock
	Sources []Source  // that give readings of [Run.Readings]
}

// Watched is a record of what a node watched, with the node's clock at the record. The
// times in it are by the clock before the step that it tells.
type Watched struct {
	Clock Clock
	journal.Watched
}

// Source is when a node last read a source, by the orchestrator's clock.
type Source struct {
	Name   string
	At     time.Time
	Failed bool // it could not be read
}

// judged is what rules say about an attempt.
type judged struct {
	broken    string // the first rule that is, with both values; empty: none
	drivers   bool   // it is a value of the driver, which another attempt would have again
	undecided []string
}

func (j *judged) breaks(rule runsheet.Rule, format string, args ...any) {
	if j.broken == "" {
		j.broken = fmt.Sprintf("rule %s: %s", rule, fmt.Sprintf(format, args...))
	}
}

func (j *judged) unknown(rule runsheet.Rule, format string, args ...any) {
	j.undecided = append(j.undecided, fmt.Sprintf("rule %s: %s", rule, fmt.Sprintf(format, args...)))
}

// rules are the plan's; none of it where it has none.
func (v *Run) rules() *runsheet.Valid {
	if v.Sheet.Valid == nil {
		return &runsheet.Valid{}
	}
	return v.Sheet.Valid
}

// Readings names the readings that tell when the sources which rules are about were read.
func (v *Run) Readings() (names []string) {
	for _, l := range v.rules().Readings {
		names = append(names, l.Reading)
	}
	if v.rules().PositionMetres > 0 {
		names = append(names, runsheet.ReadingLatitude)
	}
	return names
}

// Complete reports whether everything about an attempt is there: every node has
// delivered what it watched until its end, and asked its sources after it.
func (v *Run) Complete(a *Attempt) bool {
	rules := v.rules()
	watches := rules.ClockStep > 0 || rules.Interfering != nil || rules.HostShare > 0 || v.Counts()
	for _, w := range v.Nodes {
		if n := len(w.Watched); watches && (n == 0 || w.until(n-1).Before(a.to())) {
			return false
		}
		for _, t := range w.Sources {
			// Nobody knows when one that could not be read will be again, and a relay knows
			// no trial boundary, and reads such a source before and after the run.
			expected := !t.Failed && (w.Role != radio.RoleRelay || !v.betweenTrials(t.Name))
			if expected && t.At.Before(a.to()) && !w.Newest.After(a.to().Add(readingsLate)) {
				return false
			}
		}
	}
	return true
}

// betweenTrials reports whether a source of the radio is only read between trials.
func (v *Run) betweenTrials(source string) bool {
	all := slices.Concat(v.Sheet.Radio.Sources(false), v.Sheet.Radio.Sources(true))
	return slices.ContainsFunc(all, func(t telemetrysource.Source) bool {
		return t.Name == source && t.Poll == telemetrysource.PollBetweenTrials
	})
}

func (w *Node) since(i int) time.Time {
	return w.at(i, w.Watched[i].Since)
}

func (w *Node) until(i int) time.Time {
	return w.at(i, w.Watched[i].Until)
}

// at is a time in a record by the orchestrator's clock.
func (w *Node) at(i int, t time.Time) time.Time {
	r := &w.Watched[i]
	return t.Add(r.Clock.Offset + r.ClockStep)
}

// Validity holds an attempt against what else was on the air, and applies the rules in
// the order of plans, node by node. No mark: it broke none. Undecided: what is not known
// of it, a line each.
func (v *Run) Validity(a *Attempt) (mark *Mark, undecided string) {
	j, rules := &judged{}, v.rules()
	v.judgeAir(j, a)
	if rules.ClockStep > 0 {
		v.eachNode(func(w *Node) { w.judgeClock(j, rules.ClockStep, a) })
	}
	if rules.Interfering != nil {
		carried := v.carried(a)
		v.eachNode(func(w *Node) { w.judgeTraffic(j, rules.Interfering, carried, a) })
	}
	if rules.HostShare > 0 {
		v.eachNode(func(w *Node) { w.judgeHost(j, rules.HostShare, a) })
	}
	for i := range rules.Readings {
		v.eachNode(func(w *Node) { judgeReading(j, &rules.Readings[i], w.Role, a.Readings) })
	}
	if most := rules.PositionMetres; most > 0 {
		v.eachNode(func(w *Node) { judgePosition(j, most, w.Role, a.Moves) })
	}
	if j.broken != "" {
		had := "succeeded"
		if !a.Succeeded {
			had = a.ended()
		}
		mark = a.mark(j.broken, had, !j.drivers)
	}
	return mark, clipText(strings.Join(j.undecided, "\n"), maxUndecided)
}

// eachNode goes through the nodes from client to server.
func (v *Run) eachNode(f func(*Node)) {
	for _, role := range radio.Roles {
		for _, w := range v.Nodes {
			if w.Role == role {
				f(w)
			}
		}
	}
}

// unwatched notes a time of the attempt during which the node was not watched.
func (w *Node) unwatched(j *judged, rule runsheet.Rule, a *Attempt) {
	w.gap(a, func(text string) { j.unknown(rule, "%s", text) })
}

// gap calls note for each such time.
func (w *Node) gap(a *Attempt, note func(text string)) {
	from := a.from()
	report := func(to time.Time) {
		if to.Sub(from) > unwatchedGap+a.Clock.Bound {
			note(fmt.Sprintf("the %s was not watched from %s to %s, its agent was not running or its journal is not there", w.Role, clockTime(from), clockTime(to)))
		}
	}
	for i := range w.Watched {
		since, until := w.since(i), w.until(i)
		if until.Before(a.from()) || since.After(a.to()) {
			continue
		}
		report(since)
		if until.After(from) {
			from = until
		}
	}
	report(a.to())
}

func (w *Node) judgeClock(j *judged, most time.Duration, a *Attempt) {
	var all, newest time.Duration
	for i := range w.Watched {
		r := &w.Watched[i]
		margin := a.Clock.Bound + r.Clock.Bound
		until := w.until(i)
		if r.ClockStep != 0 && !until.Add(margin).Before(a.from()) && !until.Add(-r.ClockLook-margin).After(a.to()) {
			all, newest = all+r.ClockStep.Abs(), r.ClockStep
		}
	}
	how := fmt.Sprintf("by %s", signed(newest))
	if all != newest.Abs() {
		how = fmt.Sprintf("several times, by %s in all", all)
	}
	if all > most {
		j.breaks(runsheet.RuleClockStep, "the clock of the %s stepped %s, at most %s are allowed", w.Role, how, most)
		return
	}
	w.unwatched(j, runsheet.RuleClockStep, a)
}

func signed(d time.Duration) string {
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}

// carried is how many bytes of payload an attempt is to carry; of flows that a time
// ends, and of probes alone, what they did carry. It is thus the same for a success
// and a failure, whatever was sent again.
func (v *Run) carried(a *Attempt) (sum int64) {
	t := a.trialIn(v.Sheet)
	if t == nil {
		return 0
	}
	if len(t.Flows) == 0 {
		return a.Carried.Probed
	}
	for i, f := range t.Flows {
		if f.Duration == 0 {
			sum += f.SizeBytes
		} else {
			sum += a.Carried.Delivered[i]
		}
	}
	return sum
}

func (w *Node) judgeTraffic(j *judged, rule *runsheet.Interfering, carried int64, a *Attempt) {
	sum, unwatched := int64(0), ""
	var most *journal.Conversation
	for i := range w.Watched {
		r, since := &w.Watched[i], w.since(i)
		if w.until(i).Before(a.from()) || since.After(a.to()) {
			continue
		}
		if r.Unwatched != "" {
			unwatched = r.Unwatched
		}
		if r.Other == nil {
			continue
		}
		here := int64(0)
		for _, b := range r.Other.Bytes {
			if t := since.Add(b.After + journal.OtherTrafficStep/2); !t.Before(a.from()) && !t.After(a.to()) {
				here += b.Bytes
			}
		}
		if here > 0 && len(r.Other.Most) > 0 && (most == nil || r.Other.Most[0].Bytes > most.Bytes) {
			most = &r.Other.Most[0]
		}
		sum += here
	}
	limit, of := rule.Bytes, ""
	if rule.Share > 0 {
		limit, of = int64(rule.Share*float64(carried)), fmt.Sprintf(" (%g %% of %s)", rule.Share*100, bytesText(carried))
	}
	switch {
	case sum > limit && carried == 0 && rule.Share > 0:
		j.unknown(runsheet.RuleInterfering, "%s of other traffic at the %s, and the attempt carried nothing of which that could be a share", bytesText(sum), w.Role)
	case sum > limit:
		what := ""
		if most != nil {
			what = ", mostly " + most.What
		}
		j.breaks(runsheet.RuleInterfering, "%s of other traffic%s passed the radio's interface of the %s, at most %s are allowed%s", bytesText(sum), what, w.Role, bytesText(limit), of)
	case unwatched != "":
		j.unknown(runsheet.RuleInterfering, "the %s: %s", w.Role, unwatched)
	default:
		w.unwatched(j, runsheet.RuleInterfering, a)
	}
}

// bytesText is a size in the unit in which it is short.
func bytesText(n int64) string {
	if n < 10<<10 {
		return unit.FormatBytes(n)
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/unit.KB)
}

// kinds are the sources that a rule is about.
func kinds(r runsheet.Rule, kind string) bool {
	about := telemetrysource.AboutNode
	if r == runsheet.RuleTelemetry {
		about = telemetrysource.AboutRadio
	}
	return telemetrysource.Kind(kind).Is(about)
}

func judgeReading(j *judged, l *runsheet.ReadingLimit, role radio.Role, readings []report.Telemetry) {
	found := false
	for i := range readings {
		r := &readings[i]
		if r.Role != string(role) || r.Metric != l.Reading || !kinds(l.Rule, r.Kind) {
			continue
		}
		found = true
		for _, x := range []float64{r.Minimum, r.Maximum} {
			if !l.Allows(x) {
				j.breaks(l.Rule, "reading %s of %s at the %s was %.6g %s, %s is allowed", l.Reading, r.Source, role, x, r.Unit, l)
				return
			}
		}
	}
	if !found {
		j.unknown(l.Rule, "no reading of %s at the %s during the attempt", l.Reading, role)
	}
}

func judgePosition(j *judged, most float64, role radio.Role, moves []Move) {
	found := false
	for _, m := range moves {
		if m.Role != role {
			continue
		}
		found = true
		if m.Metres > most {
			j.breaks(runsheet.RulePosition, "the %s was %.1f m from where it was when the run began, at most %g m are allowed", role, m.Metres, most)
			return
		}
	}
	if !found {
		j.unknown(runsheet.RulePosition, "no position of the %s during the attempt", role)
	}
}
