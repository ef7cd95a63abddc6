package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/backoff"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/launch"
	"linktrial/orchestrator/library/librarydb"
	"linktrial/orchestrator/store"
)

// State of a scheduled plan.
type State string

// The states; all but the first are ends.
const (
	Waiting   State = "waiting"
	Started   State = "started"
	Failed    State = "failed"
	Missed    State = "missed"
	Cancelled State = "cancelled"
	// Skipped is a start by a rule that found the run of an earlier one under way.
	Skipped State = "skipped"
)

// starting is the state between the claim of a schedule and the outcome of its
// start; it lasts where the orchestrator was killed between the two.
const starting State = "starting"

// Scheduled is a plan that starts, or was to start, at a time.
type Scheduled struct {
	ID       string
	Plan     string
	At       time.Time
	Name     string // of the campaign; empty: the plan's
	By       string
	State    State
	Message  string // why it failed or was missed, or what it will have to wait for
	Campaign string
	Patience time.Duration // how late it may start

	Recurrence string // the rule by which it starts; empty: a single start
	Number     int    // which start of the rule, from 1
}

// DefaultPatience is how late a plan may start where nobody says otherwise: an agent
// that is started again, or a laptop that changes its network, is back by then.
const DefaultPatience = 2 * time.Minute

const (
	minPatience = 10 * time.Second
	maxPatience = 24 * time.Hour

	maxAhead  = 366 * 24 * time.Hour // from now to the time of a schedule
	maxListed = 500
	maxName   = 200 // bytes
)

// ErrEnded reports that a schedule to be cancelled is no longer waiting.
var ErrEnded = errors.New("is not waiting any more")

// ErrState reports that a repeated schedule's state does not allow a change.
var ErrState = errors.New("cannot be changed so")

// Order says when a plan is to start.
type Order struct {
	Plan     string
	At       time.Time
	Patience time.Duration // 0: [DefaultPatience]
	Name     string        // of the campaign; empty: the plan's
	By       string
}

// check returns [ErrRefused] with what is wrong with an order.
func (o *Order) check(now time.Time) error {
	switch {
	case o.At.Before(now):
		return fmt.Errorf("time %s has passed; it is %s: %w", o.At.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), ErrRefused)
	case o.At.Sub(now) > maxAhead:
		return fmt.Errorf("time %s is more than a year away: %w", o.At.UTC().Format(time.RFC3339), ErrRefused)
	case o.Patience < minPatience || o.Patience > maxPatience:
		return fmt.Errorf("the plan may start %s late: expected %s to %s: %w", o.Patience, minPatience, maxPatience, ErrRefused)
	}
	return nil
}

// Schedule sets a time for a plan as it is now: what is saved later does not
// change the scheduled plan. It returns [ErrRefused] with all faults of a plan
// that has some.
func (l *Library) Schedule(ctx context.Context, order Order) (Scheduled, error) {
	name, at := order.Plan, order.At
	order.Patience = cmp.Or(order.Patience, DefaultPatience)
	p, total, err := l.schedulable(ctx, name, order.Name, order.By)
	if err != nil {
		return Scheduled{}, err
	}
	now := l.cfg.Now()
	if err := order.check(now); err != nil {
		return Scheduled{}, err
	}
	message, err := l.overlaps(ctx, at, total)
	if err != nil {
		return Scheduled{}, err
	}
	s := Scheduled{ID: newID(), Plan: name, At: at.UTC().Truncate(time.Microsecond), Name: order.Name, By: order.By, State: Waiting, Message: message, Patience: order.Patience}
	if err := l.db.InsertSchedule(ctx, librarydb.InsertScheduleParams{ID: s.ID, Plan: name, PlanText: p.Text, PlanHash: hashOf(p.Text), StartAt: s.At,
		EstimatedSeconds: total.Seconds(), Name: s.Name, GivenBy: s.By, GivenAt: now, Message: message, PatienceSeconds: s.Patience.Seconds()}); err != nil {
		return Scheduled{}, fmt.Errorf("schedule plan %s: %w", name, err)
	}
	l.log.Info("plan is scheduled", "schedule", s.ID, "plan", name, "at", s.At, "patience", s.Patience, "by", s.By)
	l.look()
	return s, nil
}

// schedulable returns a plan that can be started later, and how long it will take.
// It returns [ErrRefused] with all faults of a plan that has some.
func (l *Library) schedulable(ctx context.Context, name, campaign, by string) (Plan, time.Duration, error) {
	if len(campaign) > maxName || len(by) > maxName {
		return Plan{}, 0, fmt.Errorf("name of the campaign or of who set the time: expected at most %d bytes: %w", maxName, ErrRefused)
	}
	p, err := l.Get(ctx, name)
	if err != nil {
		return Plan{}, 0, err
	}
	total, err := l.estimate(ctx, p)
	if err != nil {
		return Plan{}, 0, fmt.Errorf("plan %s cannot be scheduled because it has faults: %w:\n%w", name, ErrRefused, err)
	}
	return p, total, nil
}

// look makes the loop look at the schedules now.
func (l *Library) look() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// overlaps returns, for people, which other scheduled plans would still run at
// the time, or begin before this one has ended. Runs wait for one another, so an
// overlap is no reason to refuse.
func (l *Library) overlaps(ctx context.Context, at time.Time, total time.Duration) (string, error) {
	open, err := l.db.OpenSchedules(ctx)
	if err != nil {
		return "", fmt.Errorf("schedules: %w", err)
	}
	var with []string
	for _, o := range open {
		took := time.Duration(o.EstimatedSeconds * float64(time.Second))
		if at.Before(o.StartAt.Add(took)) && o.StartAt.Before(at.Add(total)) {
			with = append(with, fmt.Sprintf("%s (%s, about %s)", o.Plan, o.StartAt.UTC().Format(time.RFC3339), took.Round(time.Second)))
		}
	}
	if len(with) == 0 {
		return "", nil
	}
	return "overlaps with " + strings.Join(with, ", ") + ": where both use the same nodes, the later one waits", nil
}

// Schedules lists the schedules that wait, the next first, and then those that
// have ended, the newest first.
func (l *Library) Schedules(ctx context.Context) ([]Scheduled, error) {
	rows, err := l.db.Schedules(ctx, maxListed)
	if err != nil {
		return nil, fmt.Errorf("schedules: %w", err)
	}
	out := make([]Scheduled, len(rows))
	for i, r := range rows {
		out[i] = asScheduled(r)
	}
	return out, nil
}

func asScheduled(r librarydb.SchedulesRow) Scheduled {
	out := Scheduled{ID: r.ID, Plan: r.Plan, At: r.StartAt.UTC(), Name: r.Name, By: r.GivenBy, State: State(r.State), Message: r.Message, Patience: patience(r.PatienceSeconds)}
	if r.State == string(starting) {
		out.State = Waiting // it leaves this state within moments
	}
	if r.CampaignID != nil {
		out.Campaign = *r.CampaignID
	}
	if r.RecurrenceID != nil {
		out.Recurrence, out.Number = *r.RecurrenceID, int(*r.Number)
	}
	return out
}

// Cancel cancels a schedule. It returns [ErrEnded] where its time has come already.
func (l *Library) Cancel(ctx context.Context, id string) error {
	for {
		n, err := l.end(ctx, id, Waiting, Cancelled, "", "")
		if err != nil || n > 0 {
			return err
		}
		r, err := l.db.Schedule(ctx, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("schedule %q: %w", id, ErrNotFound)
		}
		if err != nil {
			return fmt.Errorf("schedule %q: %w", id, err)
		}
		if State(r.State) != starting && State(r.State) != Waiting {
			return fmt.Errorf("schedule %s of plan %s %w: %s", id, r.Plan, ErrEnded, r.State)
		}
		// It is tried at this moment: within moments it has started, or waits again.
		if !backoff.Sleep(ctx, tryTime) {
			return fmt.Errorf("schedule %s: %w", id, ctx.Err())
		}
	}
}

// tryTime is about how long an attempt to start a plan takes.
const tryTime = 20 * time.Millisecond

func (l *Library) end(ctx context.Context, id string, from, to State, message, campaign string) (int64, error) {
	now := l.cfg.Now()
	p := librarydb.EndScheduleParams{ID: id, FromState: string(from), State: string(to), Message: message, EndedAt: &now}
	if campaign != "" {
		p.CampaignID = &campaign
	}
	n, err := l.db.EndSchedule(ctx, p)
	if err != nil {
		return 0, fmt.Errorf("schedule %s: %w", id, err)
	}
	if n > 0 {
		l.log.Info("scheduled plan", "schedule", id, "state", string(to), "campaign", campaign, "message", message)
	}
	return n, nil
}

// resolveClaimed ends the schedules that an orchestrator was about to start when
// it was killed: as started where the campaign is in the store, otherwise as
// missed.
func (l *Library) resolveClaimed(ctx context.Context) error {
	open, err := l.db.OpenSchedules(ctx)
	if err != nil {
		return fmt.Errorf("schedules: %w", err)
	}
	for _, o := range open {
		if State(o.State) != starting {
			continue
		}
		ids, err := l.db.CampaignStartedSince(ctx, librarydb.CampaignStartedSinceParams{PlanHash: o.PlanHash, PlanFile: fileOf(o.Plan), CreatedAt: *o.ClaimedAt})
		if err != nil {
			return fmt.Errorf("schedule %s: %w", o.ID, err)
		}
		if len(ids) > 0 {
			_, err = l.end(ctx, o.ID, starting, Started, o.Message, ids[0])
		} else {
			_, err = l.end(ctx, o.ID, starting, Missed, "the orchestrator was stopped just before it could start the plan", "")
		}
		if err != nil {
			return err
		}
	}
	return l.startDue(ctx, false)
}

// fileOf returns the file name that campaigns started by schedule have.
func fileOf(plan string) string { return plan + ".yaml" }

// retryEvery is how often a start is tried for which nodes are missing. Each one checks
// the plan again, which takes some milliseconds, some hundred for a very large one.
const retryEvery = 2 * time.Second

func patience(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// checkEvery is how often at least the times are compared with the clock, which
// somebody may set.
const checkEvery = 5 * time.Second

func (l *Library) loop(ctx context.Context) {
	t := time.NewTimer(0)
	defer t.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-t.C:
		}
		err := l.turn(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			l.log.Error("scheduled plans cannot be read; this is tried again", "error", err)
		}
		failing = err != nil
		t.Reset(l.next(ctx))
	}
}

// turn enters the starts that rules have next, starts what is due, and enters again
// what follows on that.
func (l *Library) turn(ctx context.Context) error {
	_ = l.enterStarts(ctx) // the second time reports what is wrong
	err := l.startDue(ctx, l.cfg.Now().Sub(l.began) >= l.cfg.Settle)
	return errors.Join(err, l.enterStarts(ctx))
}

// next returns how long it takes until a schedule may be due.
func (l *Library) next(ctx context.Context) time.Duration {
	d := checkEvery
	open, err := l.db.OpenSchedules(ctx)
	if err != nil || len(open) == 0 {
		return d
	}
	now := l.cfg.Now()
	at := open[0].StartAt
	if at.Before(now) {
		at = now.Add(retryEvery)
	}
	if ready := l.began.Add(l.cfg.Settle); at.Before(ready) {
		at = ready
	}
	return max(min(at.Sub(now), d), 10*time.Millisecond)
}

// startDue marks the schedules that were missed and, where start is true, starts
// those that are due.
func (l *Library) startDue(ctx context.Context, start bool) error {
	open, err := l.db.OpenSchedules(ctx)
	if err != nil {
		return fmt.Errorf("schedules: %w", err)
	}
	for _, o := range open {
		now := l.cfg.Now()
		if State(o.State) != Waiting || o.StartAt.After(now) {
			continue
		}
		if after, most := now.Sub(o.StartAt), patience(o.PatienceSeconds); after > most && o.ClaimedAt == nil {
			if _, err := l.end(ctx, o.ID, Waiting, Missed, missed(&o, after), ""); err != nil {
				return err
			}
			continue
		}
		if !start {
			continue
		}
		if err := l.start(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// missed is the message of a schedule that was found so long after its time.
func missed(o *librarydb.Schedule, after time.Duration) string {
	text := fmt.Sprintf("the orchestrator was not running then; found %s later, and this plan starts at most %s late", after.Round(time.Second), patience(o.PatienceSeconds))
	if o.RecurrenceID != nil && o.Message != "" {
		text += "; " + o.Message
	}
	return text
}

// start starts one plan, or puts it off where nodes are missing and the schedule's patience
// is not at its end. A claimed schedule is ended even where ctx ends meanwhile.
func (l *Library) start(ctx context.Context, o librarydb.Schedule) error {
	if former, err := l.formerUnderWay(ctx, o.RecurrenceID); err != nil {
		return err
	} else if former != "" {
		_, err := l.end(ctx, o.ID, Waiting, Skipped, former, "")
		return err
	}
	// A claim that ctx's end interrupts could have been made, with nobody who knows.
	keep := context.WithoutCancel(ctx)
	if n, err := l.db.ClaimSchedule(keep, o.ID); err != nil || n == 0 {
		return err // cancelled meanwhile
	}
	ahead := l.cfg.Ahead()
	if ctx.Err() != nil { // nothing has begun: the next start of the orchestrator tries it again
		return errors.Join(ctx.Err(), l.db.PostponeSchedule(keep, librarydb.PostponeScheduleParams{ID: o.ID, Message: o.Message}))
	}
	until := o.StartAt.Add(patience(o.PatienceSeconds))
	started, err := l.cfg.Launcher.Start(ctx, launch.Request{File: fileOf(o.Plan), Text: o.PlanText, Name: o.Name})
	var missing launch.Missing
	var faults yamldoc.Problems
	switch {
	case errors.As(err, &missing) && l.cfg.Now().Before(until):
		err = l.db.PostponeSchedule(keep, librarydb.PostponeScheduleParams{ID: o.ID, Message: fmt.Sprintf("is tried until %s: %s", unit.Clock(until), missing)})
	case errors.As(err, &missing):
		_, err = l.end(keep, o.ID, starting, Failed, fmt.Sprintf("could not start within %s: %s", patience(o.PatienceSeconds), missing), "")
	case errors.As(err, &faults):
		_, err = l.end(keep, o.ID, starting, Failed, faults.Error(), "")
	case err != nil && ctx.Err() != nil:
		return ctx.Err() // the next start of the orchestrator resolves it
	case err != nil:
		_, text := store.Explain(l.log, "start plan", err)
		_, err = l.end(keep, o.ID, starting, Failed, text, "")
	default:
		message := o.Message
		if o.ClaimedAt != nil { // the message is about an earlier attempt
			message = fmt.Sprintf("started %s late, because nodes were missing", l.cfg.Now().Sub(o.StartAt).Round(time.Second))
		}
		if len(ahead) > 0 {
			message = "waits for the runs that were under way then: " + strings.Join(ahead, ", ")
		}
		_, err = l.end(keep, o.ID, starting, Started, message, started.Campaign)
	}
	return err
}
