package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/dbsqlc"
	"linktrial/orchestrator/telemetry"
)

// Rules of validity are decided where the journals of all nodes are together. An
// attempt that breaks one, whether it succeeded or failed, is marked as invalid with
// the rule and both figures, and its trial is repeated while the run goes on. What
// cannot be decided is kept with the attempt, which counts.

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

// validity is what is known of a run whose plan has rules, or which has real radios.
type validity struct {
	sheet   *runsheet.Sheet
	watched map[string]*watchedNode
}

// watchedNode is what one node watched, as far as it was delivered.
type watchedNode struct {
	role    radio.Role
	clock   *store.NodeClock
	records []watchedRecord
	newest  dbsqlc.NewestRecordRow
}

type watchedRecord struct {
	seq int64
	journal.Watched
}

func newValidity(s *runsheet.Sheet) *validity {
	return &validity{sheet: s, watched: map[string]*watchedNode{}}
}

// rules are the plan's; none of it where it has none.
func (v *validity) rules() *runsheet.Valid {
	if v.sheet.Valid == nil {
		return &runsheet.Valid{}
	}
	return v.sheet.Valid
}

// attemptTime is when an attempt ran, by the orchestrator's clock within a bound.
type attemptTime struct {
	from, to time.Time
	bound    time.Duration
}

// judged is what rules say about an attempt.
type judged struct {
	broken    string // the first rule that is, with both figures; empty: none
	drivers   bool   // it is a figure of the driver, which another attempt would have again
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

// judgeValidity applies the plan's rules to the attempts of an open run about which
// everything is there, or where last is set, to all.
func (e *Engine) judgeValidity(ctx context.Context, run, hash string, last bool) error {
	info, err := e.sheetOf(ctx, run, hash)
	if err != nil {
		return err
	}
	v := info.validity
	attempts, err := e.cfg.Store.UnjudgedAttempts(ctx, dbsqlc.UnjudgedAttemptsParams{RunID: run, Self: journal.Self})
	if err != nil || len(attempts) == 0 {
		return err
	}
	if err := v.read(ctx, e.cfg.Store.Queries, run); err != nil {
		return err
	}
	if v.sheet.Valid == nil && !v.counted() {
		return nil
	}
	read, err := e.newestReadings(ctx, v, run)
	if err != nil {
		return err
	}
	for i := range attempts {
		a := &attempts[i]
		at := v.timeOf(a)
		if !last && !v.complete(at, read) {
			continue
		}
		j, err := e.applyRules(ctx, v, run, a, at)
		if err != nil {
			return err
		}
		if err := e.settle(ctx, run, a, j); err != nil {
			return err
		}
	}
	return nil
}

// settle keeps what was decided. A mark comes first: without it the attempt would
// be looked at again, without the other it would not be.
func (e *Engine) settle(ctx context.Context, run string, a *dbsqlc.UnjudgedAttemptsRow, j judged) error {
	if j.broken != "" {
		ended := "succeeded"
		if a.Verdict != string(journal.Succeeded) {
			ended = "ended with " + a.Reason
		}
		reason := clipText(j.broken, maxText-100) + fmt.Sprintf(" (the attempt had %s)", ended)
		if err := e.excuse(ctx, run, excused{int(a.Trial), int(a.Attempt), a.Last && !j.drivers, a.Marks}, reason); err != nil {
			return err
		}
	}
	return e.cfg.Store.SetUndecided(ctx, dbsqlc.SetUndecidedParams{RunID: run, Trial: a.Trial, Attempt: a.Attempt, Undecided: clipText(strings.Join(j.undecided, "\n"), maxUndecided)})
}

func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}

// read adds what was delivered since.
func (v *validity) read(ctx context.Context, q *dbsqlc.Queries, run string) error {
	nodes, err := q.RunNodes(ctx, run)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		w := v.watched[n.Node]
		if w == nil {
			w = &watchedNode{role: radio.Role(n.Role)}
			v.watched[n.Node] = w
		}
		if err := w.read(ctx, q, run, n.Node); err != nil {
			return err
		}
	}
	offsets, err := q.ClockOffsets(ctx, run) // after the records: it has all steps before them
	if err != nil {
		return err
	}
	clocks := store.NodeClocks(offsets)
	for node, w := range v.watched {
		w.clock = clocks[node]
	}
	return nil
}

func (w *watchedNode) read(ctx context.Context, q *dbsqlc.Queries, run, node string) error {
	after := int64(0)
	if n := len(w.records); n > 0 {
		after = w.records[n-1].seq
	}
	rows, err := q.WatchedRecords(ctx, dbsqlc.WatchedRecordsParams{RunID: run, Node: node, After: after})
	if err != nil {
		return err
	}
	for _, r := range rows {
		x := watchedRecord{seq: r.Seq}
		if json.Unmarshal(r.Body, &x.Watched) != nil {
			continue // checked when it was stored
		}
		w.records = append(w.records, x)
	}
	w.newest, err = q.NewestRecord(ctx, dbsqlc.NewestRecordParams{RunID: run, Node: node})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// timeOf is when an attempt ran.
func (v *validity) timeOf(a *dbsqlc.UnjudgedAttemptsRow) attemptTime {
	c := store.Clock{}
	for _, w := range v.watched {
		if w.role == leader {
			c = w.clock.Stored(a.StartedSeq)
		}
	}
	from := a.StartedAt.Add(c.Offset)
	return attemptTime{from, from.Add(time.Duration(a.DurationNs)), c.Bound}
}

// newestReadings is when each source that rules are about was last read on each node,
// by the orchestrator's clock. Those that could not be read are left out: nobody knows
// when they will be again.
func (e *Engine) newestReadings(ctx context.Context, v *validity, run string) (map[string][]time.Time, error) {
	var names []string
	for _, l := range v.rules().Readings {
		names = append(names, l.Reading)
	}
	if v.rules().PositionMetres > 0 {
		names = append(names, runsheet.ReadingLatitude)
	}
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := e.cfg.Store.NewestReadings(ctx, dbsqlc.NewestReadingsParams{RunID: run, Names: names})
	if err != nil {
		return nil, err
	}
	out := map[string][]time.Time{}
	for _, r := range rows {
		w := v.watched[r.Node]
		if w == nil || r.Failed || w.role == radio.RoleRelay && v.betweenTrials(r.Source) {
			continue // a relay knows no trial boundary, and reads such a source before and after the run
		}
		out[r.Node] = append(out[r.Node], r.At.Add(w.clock.Stored(w.newest.Seq).Offset))
	}
	return out, nil
}

// betweenTrials reports whether a source of the radio is only read between trials.
func (v *validity) betweenTrials(source string) bool {
	all := slices.Concat(v.sheet.Radio.Sources(false), v.sheet.Radio.Sources(true))
	return slices.ContainsFunc(all, func(t telemetrysource.Source) bool {
		return t.Name == source && t.Poll == telemetrysource.PollBetweenTrials
	})
}

// complete reports whether everything about an attempt is there: every node has
// delivered what it watched until its end, and asked its sources after it.
func (v *validity) complete(at attemptTime, read map[string][]time.Time) bool {
	rules, counted := v.rules(), v.counted()
	for node, w := range v.watched {
		newest := w.newest.At.Add(w.clock.Recorded(w.newest.Seq).Offset)
		if rules.ClockStep > 0 || rules.Interfering != nil || rules.HostShare > 0 || counted {
			n := len(w.records)
			if n == 0 || w.until(n-1).Before(at.to) {
				return false
			}
		}
		for _, t := range read[node] {
			if t.Before(at.to) && !newest.After(at.to.Add(readingsLate)) {
				return false
			}
		}
	}
	return true
}

func (w *watchedNode) since(i int) time.Time {
	return w.at(i, w.records[i].Since)
}

func (w *watchedNode) until(i int) time.Time {
	return w.at(i, w.records[i].Until)
}

// at is a time in a record by the orchestrator's clock. The record's own time is by the
// node's clock after the step that it tells, those in it by the one before.
func (w *watchedNode) at(i int, t time.Time) time.Time {
	r := &w.records[i]
	return t.Add(w.clock.Recorded(r.seq).Offset + r.ClockStep)
}

// applyRules holds an attempt against what else was on the air, and applies the rules in
// the order of plans, node by node.
func (e *Engine) applyRules(ctx context.Context, v *validity, run string, a *dbsqlc.UnjudgedAttemptsRow, at attemptTime) (j judged, err error) {
	if err := e.judgeAir(ctx, v, &j, run, a, at); err != nil {
		return j, err
	}
	rules := v.rules()
	if rules.ClockStep > 0 {
		v.eachNode(func(w *watchedNode) { w.judgeClock(&j, rules.ClockStep, at) })
	}
	if rules.Interfering != nil {
		carried, err := e.carried(ctx, v.sheet, run, a)
		if err != nil {
			return j, err
		}
		v.eachNode(func(w *watchedNode) { w.judgeTraffic(&j, rules.Interfering, carried, at) })
	}
	if rules.HostShare > 0 {
		v.eachNode(func(w *watchedNode) { w.judgeHost(&j, rules.HostShare, at) })
	}
	if len(rules.Readings) == 0 && rules.PositionMetres == 0 {
		return j, nil
	}
	readings, moves, err := telemetry.During(ctx, e.cfg.Store.Queries, run, a.StartedAt, a.StartedAt.Add(time.Duration(a.DurationNs)))
	if err != nil {
		return j, err
	}
	for i := range rules.Readings {
		v.eachNode(func(w *watchedNode) { judgeReading(&j, &rules.Readings[i], w.role, readings) })
	}
	if most := rules.PositionMetres; most > 0 {
		v.eachNode(func(w *watchedNode) { judgePosition(&j, most, w.role, moves) })
	}
	return j, nil
}

// eachNode goes through the nodes from client to server.
func (v *validity) eachNode(f func(*watchedNode)) {
	for _, role := range radio.Roles {
		for _, w := range v.watched {
			if w.role == role {
				f(w)
			}
		}
	}
}

// unwatched notes a time of the attempt during which the node was not watched.
func (w *watchedNode) unwatched(j *judged, rule runsheet.Rule, at attemptTime) {
	w.gap(at, func(text string) { j.unknown(rule, "%s", text) })
}

// gap calls note for each such time.
func (w *watchedNode) gap(at attemptTime, note func(text string)) {
	from := at.from
	report := func(to time.Time) {
		if to.Sub(from) > unwatchedGap+at.bound {
			note(fmt.Sprintf("the %s was not watched from %s to %s, its agent was not running or its journal is not there", w.role, clockTime(from), clockTime(to)))
		}
	}
	for i := range w.records {
		since, until := w.since(i), w.until(i)
		if until.Before(at.from) || since.After(at.to) {
			continue
		}
		report(since)
		if until.After(from) {
			from = until
		}
	}
	report(at.to)
}

func (w *watchedNode) judgeClock(j *judged, most time.Duration, at attemptTime) {
	var all, newest time.Duration
	for i := range w.records {
		r := &w.records[i]
		margin := at.bound + w.clock.Recorded(r.seq).Bound
		until := w.until(i)
		if r.ClockStep != 0 && !until.Add(margin).Before(at.from) && !until.Add(-r.ClockLook-margin).After(at.to) {
			all, newest = all+r.ClockStep.Abs(), r.ClockStep
		}
	}
	how := fmt.Sprintf("by %s", signed(newest))
	if all != newest.Abs() {
		how = fmt.Sprintf("several times, by %s in all", all)
	}
	if all > most {
		j.breaks(runsheet.RuleClockStep, "the clock of the %s stepped %s, at most %s are allowed", w.role, how, most)
		return
	}
	w.unwatched(j, runsheet.RuleClockStep, at)
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
func (e *Engine) carried(ctx context.Context, s *runsheet.Sheet, run string, a *dbsqlc.UnjudgedAttemptsRow) (int64, error) {
	if int(a.Trial) >= len(s.Trials) {
		return 0, nil
	}
	t := &s.Trials[a.Trial]
	if len(t.Flows) == 0 {
		return e.cfg.Store.ProbedBytes(ctx, dbsqlc.ProbedBytesParams{RunID: run, Trial: a.Trial, Attempt: a.Attempt})
	}
	rows, err := e.cfg.Store.CarriedBytes(ctx, dbsqlc.CarriedBytesParams{RunID: run, Trial: a.Trial, Attempt: a.Attempt})
	if err != nil {
		return 0, err
	}
	sum := int64(0)
	for i, f := range t.Flows {
		if f.Duration == 0 {
			sum += f.SizeBytes
			continue
		}
		for _, r := range rows {
			if int(r.Flow) == i {
				sum += r.Bytes
			}
		}
	}
	return sum, nil
}

func (w *watchedNode) judgeTraffic(j *judged, rule *runsheet.Interfering, carried int64, at attemptTime) {
	sum, unwatched := int64(0), ""
	var most *journal.Conversation
	for i := range w.records {
		r, since := &w.records[i], w.since(i)
		if w.until(i).Before(at.from) || since.After(at.to) {
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
			if t := since.Add(b.After + journal.OtherTrafficStep/2); !t.Before(at.from) && !t.After(at.to) {
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
		j.unknown(runsheet.RuleInterfering, "%s of other traffic at the %s, and the attempt carried nothing of which that could be a share", bytesText(sum), w.role)
	case sum > limit:
		what := ""
		if most != nil {
			what = ", mostly " + most.What
		}
		j.breaks(runsheet.RuleInterfering, "%s of other traffic%s passed the radio's interface of the %s, at most %s are allowed%s", bytesText(sum), what, w.role, bytesText(limit), of)
	case unwatched != "":
		j.unknown(runsheet.RuleInterfering, "the %s: %s", w.role, unwatched)
	default:
		w.unwatched(j, runsheet.RuleInterfering, at)
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
		if r.Role != string(role) || r.Figure != l.Reading || !kinds(l.Rule, r.Kind) {
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

func judgePosition(j *judged, most float64, role radio.Role, moves []telemetry.Move) {
	found := false
	for _, m := range moves {
		if m.Role != string(role) {
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
