package library

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/unit"
	"linktrial/orchestrator/library/librarydb"
	"linktrial/orchestrator/library/recurrence"
	"linktrial/orchestrator/store"
)

// RecurrenceState is how a rule stands.
type RecurrenceState string

// The states of rules. A paused one has no next start until it is resumed; an ended
// one has no further start at all.
const (
	Active  RecurrenceState = "active"
	Paused  RecurrenceState = "paused"
	Ended   RecurrenceState = "ended"
	removed RecurrenceState = "removed"
)

// Recurrence is a plan that starts again and again by a rule.
type Recurrence struct {
	ID      string
	Plan    string
	Rule    string // as recurrence.Rule writes it
	Name    string // of the campaigns, before the time of each start; empty: the plan's
	By      string
	State   RecurrenceState
	Next    []time.Time // the next starts, at most Shown; none unless active
	Last    []Scheduled // the last starts that have ended, newest first
	Message string      // what is to be expected, as starts that will be skipped
}

// Shown is how many of a rule's next starts are shown.
const Shown = 3

const (
	maxRecurrences = 100
	lastShown      = 5
)

// Preview reads a rule and returns it with the starts that follow from it now. It
// returns [ErrRefused] where the text is no rule, or has no start to come.
func (l *Library) Preview(text string) (recurrence.Rule, []time.Time, error) {
	now := l.cfg.Now()
	rule, err := recurrence.Parse(text, now)
	if err != nil {
		return rule, nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	next := rule.Starts(now, Shown)
	switch {
	case len(next) == 0:
		return rule, nil, fmt.Errorf("rule %q has no start after %s: %w", rule, unit.Moment(now), ErrRefused)
	case next[0].Sub(now) > maxAhead:
		return rule, nil, fmt.Errorf("the first start of rule %q is more than a year away: %w", rule, ErrRefused)
	}
	return rule, next, nil
}

// Recur has a plan, as it is now, start by a rule until it ends or is paused or
// removed. It returns [ErrRefused] with all faults of a plan that has some.
// How late each start may be must be less than the time between two of them.
func (l *Library) Recur(ctx context.Context, text string, order Order) (Recurrence, error) {
	name := order.Plan
	rule, next, err := l.Preview(text)
	if err != nil {
		return Recurrence{}, err
	}
	order.Patience, order.At = cmp.Or(order.Patience, DefaultPatience), next[0]
	if err := order.check(l.cfg.Now()); err != nil {
		return Recurrence{}, err
	}
	if len(next) > 1 && order.Patience >= next[1].Sub(next[0]) {
		return Recurrence{}, fmt.Errorf("each start may be %s late, and there are only %s between two starts: %w", order.Patience, next[1].Sub(next[0]), ErrRefused)
	}
	p, total, err := l.schedulable(ctx, name, order.Name, order.By)
	if err != nil {
		return Recurrence{}, err
	}
	if _, err := withSeedOf(2, p.Text); err != nil {
		return Recurrence{}, fmt.Errorf("plan %s: %w: %w", name, ErrRefused, err)
	}
	all, err := l.db.Recurrences(ctx)
	if err != nil {
		return Recurrence{}, fmt.Errorf("recurrences: %w", err)
	}
	if len(all) >= maxRecurrences {
		return Recurrence{}, fmt.Errorf("there are %d repeated schedules, which is as many as there may be: remove one first: %w", len(all), ErrRefused)
	}
	r := Recurrence{ID: newID(), Plan: name, Rule: rule.String(), Name: order.Name, By: order.By, State: Active, Next: next, Message: crowded(next, total)}
	now := l.cfg.Now()
	if err := l.db.InsertRecurrence(ctx, librarydb.InsertRecurrenceParams{ID: r.ID, Plan: name, PlanText: p.Text, Rule: r.Rule,
		EstimatedSeconds: total.Seconds(), Name: order.Name, GivenBy: order.By, GivenAt: now, EnteredUntil: now, PatienceSeconds: order.Patience.Seconds()}); err != nil {
		return Recurrence{}, fmt.Errorf("schedule plan %s: %w", name, err)
	}
	l.log.Info("plan is scheduled repeatedly", "recurrence", r.ID, "plan", name, "rule", r.Rule, "by", order.By)
	l.look()
	return r, nil
}

// crowded returns, for people, that a plan takes longer than there is time between
// two of its starts; empty where it does not.
func crowded(next []time.Time, total time.Duration) string {
	for i := 1; i < len(next); i++ {
		if gap := next[i].Sub(next[i-1]); gap < total {
			return fmt.Sprintf("the plan takes about %s, and there are only %s between two starts: a start that finds the former run still under way is skipped", total.Round(time.Second), gap)
		}
	}
	return ""
}

// Recurrences lists all rules that were not removed, in the order in which they
// were made.
func (l *Library) Recurrences(ctx context.Context) ([]Recurrence, error) {
	rows, err := l.db.Recurrences(ctx)
	if err != nil {
		return nil, fmt.Errorf("recurrences: %w", err)
	}
	ended, err := l.db.LastStarts(ctx, lastShown)
	if err != nil {
		return nil, fmt.Errorf("last starts: %w", err)
	}
	last := map[string][]Scheduled{}
	for _, r := range ended {
		last[*r.RecurrenceID] = append(last[*r.RecurrenceID], asScheduled(librarydb.SchedulesRow(r)))
	}
	out := make([]Recurrence, len(rows))
	for i, r := range rows {
		out[i] = Recurrence{ID: r.ID, Plan: r.Plan, Rule: r.Rule, Name: r.Name, By: r.GivenBy, State: RecurrenceState(r.State), Last: last[r.ID]}
		if out[i].State != Active {
			continue
		}
		rule, err := recurrence.Parse(r.Rule, r.EnteredUntil)
		if err != nil {
			out[i].Message = err.Error()
			continue
		}
		out[i].Next = rule.Starts(l.cfg.Now(), Shown)
		out[i].Message = crowded(out[i].Next, time.Duration(r.EstimatedSeconds*float64(time.Second)))
	}
	return out, nil
}

// Pause takes a rule's next start away until it is resumed. A run that has begun
// goes on. Pause, Resume and Remove return [ErrEnded] where the rule's state does
// not allow it.
func (l *Library) Pause(ctx context.Context, id string) error {
	return l.setRecurrence(ctx, id, Paused, Active)
}

// Resume lets a paused rule go on. Starts that passed meanwhile are not made up.
func (l *Library) Resume(ctx context.Context, id string) error {
	return l.setRecurrence(ctx, id, Active, Paused)
}

// Remove takes a rule away. What it has started stays.
func (l *Library) Remove(ctx context.Context, id string) error {
	return l.setRecurrence(ctx, id, removed, Active, Paused, Ended)
}

func (l *Library) setRecurrence(ctx context.Context, id string, to RecurrenceState, from ...RecurrenceState) error {
	states := make([]string, len(from))
	for i, s := range from {
		states[i] = string(s)
	}
	var changed int64
	err := l.cfg.Store.InTx(ctx, func(tx store.Conn) error {
		q := librarydb.New(tx)
		var err error
		changed, err = q.SetRecurrence(ctx, librarydb.SetRecurrenceParams{ID: id, State: string(to), Now: l.cfg.Now(), FromStates: states})
		if err != nil || changed == 0 || to == Active {
			return err
		}
		_, err = q.DropWaitingStart(ctx, &id)
		return err
	})
	if err != nil {
		return fmt.Errorf("repeated schedule %s: %w", id, err)
	}
	if changed > 0 {
		l.log.Info("repeated schedule", "recurrence", id, "state", string(to))
		l.look()
		return nil
	}
	r, err := l.db.Recurrence(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && r.State == string(removed) {
		return fmt.Errorf("repeated schedule %q: %w", id, ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("repeated schedule %q: %w", id, err)
	}
	return fmt.Errorf("repeated schedule %s of plan %s is %s, expected %s: %w", id, r.Plan, r.State, strings.Join(states, " or "), ErrState)
}

// enterStarts enters the next start of each rule that has none waiting.
func (l *Library) enterStarts(ctx context.Context) error {
	rows, err := l.db.RecurrencesToEnter(ctx)
	if err != nil {
		return fmt.Errorf("recurrences: %w", err)
	}
	var errs []error
	for i := range rows {
		if err := l.enterStart(ctx, &rows[i]); err != nil {
			errs = append(errs, fmt.Errorf("repeated schedule %s: %w", rows[i].ID, err))
		}
	}
	return errors.Join(errs...)
}

func (l *Library) enterStart(ctx context.Context, r *librarydb.RecurrencesToEnterRow) error {
	rule, err := recurrence.Parse(r.Rule, r.EnteredUntil)
	if err != nil {
		return err
	}
	at, ok := rule.Next(r.EnteredUntil)
	if !ok {
		_, err := l.db.SetRecurrence(ctx, librarydb.SetRecurrenceParams{ID: r.ID, State: string(Ended), Now: l.cfg.Now(), FromStates: []string{string(Active)}})
		return err
	}
	at, message := lastMissed(rule, at, l.cfg.Now())
	text, err := withSeedOf(int(r.Entered)+1, r.PlanText)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s, %s", cmp.Or(r.Name, titleOf(r.PlanText), r.Plan), unit.Moment(at))
	_, err = l.db.EnterStart(ctx, librarydb.EnterStartParams{ID: newID(), RecurrenceID: r.ID, StartAt: at, PlanText: text,
		Name: name, GivenAt: l.cfg.Now(), Message: message, Number: r.Entered + 1})
	return err
}

// lastMissed returns the start to enter where the next one is at at: that one, or the
// last of several that have passed already, so that an orchestrator that was down for
// weeks finds one missed start and not thousands. The message says for how many it stands.
func lastMissed(rule recurrence.Rule, at, now time.Time) (time.Time, string) {
	first, n := at, 0
	for {
		next, ok := rule.Next(at)
		if !ok || next.After(now) {
			break
		}
		at, n = next, n+1
	}
	if n == 0 {
		return at, ""
	}
	return at, fmt.Sprintf("%d earlier starts since %s were missed as well", n, unit.Moment(first))
}

// formerUnderWay returns, for people, which run an earlier start by the same rule
// has begun that has not ended; empty where there is none.
func (l *Library) formerUnderWay(ctx context.Context, recurrenceID *string) (string, error) {
	if recurrenceID == nil {
		return "", nil
	}
	runs, err := l.db.FormerStillOpen(ctx, recurrenceID)
	if err != nil || len(runs) == 0 {
		return "", err
	}
	return fmt.Sprintf("run %s of an earlier start had not ended", runs[0]), nil
}

func newID() string { return strings.ToLower(rand.Text()[:10]) }
