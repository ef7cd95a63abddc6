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

	"linktrial/orchestrator/store/dbsqlc"
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
}

// late is by how much a plan may start after its time.
const late = 60 * time.Second

const (
	maxAhead  = 366 * 24 * time.Hour // from now to the time of a schedule
	maxListed = 500
	maxName   = 200 // bytes
)

// ErrEnded reports that a schedule to be cancelled is no longer waiting.
var ErrEnded = errors.New("is not waiting any more")

// Schedule sets a time for a plan as it is now: what is saved later does not
// change the scheduled plan. It returns [ErrRefused] with all faults of a plan
// that has some.
func (l *Library) Schedule(ctx context.Context, name string, at time.Time, campaign, by string) (Scheduled, error) {
	p, err := l.Get(ctx, name)
	if err != nil {
		return Scheduled{}, err
	}
	total, err := l.estimate(ctx, p)
	if err != nil {
		return Scheduled{}, fmt.Errorf("plan %s cannot be scheduled because it has faults: %w:\n%w", name, ErrRefused, err)
	}
	now := l.cfg.Now()
	switch {
	case at.Before(now):
		return Scheduled{}, fmt.Errorf("time %s has passed; it is %s: %w", at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), ErrRefused)
	case at.Sub(now) > maxAhead:
		return Scheduled{}, fmt.Errorf("time %s is more than a year away: %w", at.UTC().Format(time.RFC3339), ErrRefused)
	case len(campaign) > maxName || len(by) > maxName:
		return Scheduled{}, fmt.Errorf("name of the campaign or of who set the time: expected at most %d bytes: %w", maxName, ErrRefused)
	}
	message, err := l.overlaps(ctx, at, total)
	if err != nil {
		return Scheduled{}, err
	}
	s := Scheduled{ID: strings.ToLower(rand.Text()[:10]), Plan: name, At: at.UTC().Truncate(time.Microsecond), Name: campaign, By: by, State: Waiting, Message: message}
	if err := l.cfg.Store.InsertSchedule(ctx, dbsqlc.InsertScheduleParams{ID: s.ID, Plan: name, PlanText: p.Text, PlanHash: hashOf(p.Text), StartAt: s.At,
		EstimatedSeconds: total.Seconds(), Name: campaign, GivenBy: by, GivenAt: now, Message: message}); err != nil {
		return Scheduled{}, fmt.Errorf("schedule plan %s: %w", name, err)
	}
	l.log.Info("plan is scheduled", "schedule", s.ID, "plan", name, "at", s.At, "by", by)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return s, nil
}

// overlaps returns, for people, which other scheduled plans would still run at
// the time, or begin before this one has ended. Runs wait for one another, so an
// overlap is no reason to refuse.
func (l *Library) overlaps(ctx context.Context, at time.Time, total time.Duration) (string, error) {
	open, err := l.cfg.Store.OpenSchedules(ctx)
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
	rows, err := l.cfg.Store.Schedules(ctx, maxListed)
	if err != nil {
		return nil, fmt.Errorf("schedules: %w", err)
	}
	out := make([]Scheduled, len(rows))
	for i, r := range rows {
		out[i] = Scheduled{ID: r.ID, Plan: r.Plan, At: r.StartAt.UTC(), Name: r.Name, By: r.GivenBy, State: State(r.State), Message: r.Message}
		if r.State == string(starting) {
			out[i].State = Waiting // it leaves this state within moments
		}
		if r.CampaignID != nil {
			out[i].Campaign = *r.CampaignID
		}
	}
	return out, nil
}

// Cancel cancels a schedule. It returns [ErrEnded] where its time has come already.
func (l *Library) Cancel(ctx context.Context, id string) error {
	n, err := l.end(ctx, id, Waiting, Cancelled, "", "")
	if err != nil || n > 0 {
		return err
	}
	r, err := l.cfg.Store.Schedule(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("schedule %q: %w", id, ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("schedule %q: %w", id, err)
	}
	return fmt.Errorf("schedule %s of plan %s %w: %s", id, r.Plan, ErrEnded, r.State)
}

func (l *Library) end(ctx context.Context, id string, from, to State, message, campaign string) (int64, error) {
	now := l.cfg.Now()
	p := dbsqlc.EndScheduleParams{ID: id, FromState: string(from), State: string(to), Message: message, EndedAt: &now}
	if campaign != "" {
		p.CampaignID = &campaign
	}
	n, err := l.cfg.Store.EndSchedule(ctx, p)
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
	open, err := l.cfg.Store.OpenSchedules(ctx)
	if err != nil {
		return fmt.Errorf("schedules: %w", err)
	}
	for _, o := range open {
		if State(o.State) != starting {
			continue
		}
		ids, err := l.cfg.Store.CampaignStartedSince(ctx, dbsqlc.CampaignStartedSinceParams{PlanHash: o.PlanHash, PlanFile: fileOf(o.Plan), CreatedAt: *o.ClaimedAt})
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

// checkEvery is how often at least the times are compared with the clock, which
// somebody may set.
const checkEvery = 5 * time.Second

func (l *Library) loop(ctx context.Context) {
	defer close(l.done)
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
		err := l.startDue(ctx, l.cfg.Now().Sub(l.began) >= l.cfg.Settle)
		if err != nil && ctx.Err() == nil && !failing {
			l.log.Error("scheduled plans cannot be read; this is tried again", "error", err)
		}
		failing = err != nil
		t.Reset(l.next(ctx))
	}
}

// next returns how long it takes until a schedule may be due.
func (l *Library) next(ctx context.Context) time.Duration {
	d := checkEvery
	open, err := l.cfg.Store.OpenSchedules(ctx)
	if err != nil || len(open) == 0 {
		return d
	}
	now := l.cfg.Now()
	at := open[0].StartAt
	if ready := l.began.Add(l.cfg.Settle); at.Before(ready) {
		at = ready
	}
	return max(min(at.Sub(now), d), 10*time.Millisecond)
}

// startDue marks the schedules that were missed and, where start is true, starts
// those that are due.
func (l *Library) startDue(ctx context.Context, start bool) error {
	open, err := l.cfg.Store.OpenSchedules(ctx)
	if err != nil {
		return fmt.Errorf("schedules: %w", err)
	}
	for _, o := range open {
		now := l.cfg.Now()
		if State(o.State) != Waiting || o.StartAt.After(now) {
			continue
		}
		if after := now.Sub(o.StartAt); after > late {
			if _, err := l.end(ctx, o.ID, Waiting, Missed, fmt.Sprintf("the orchestrator was not running then; found %s later, and a plan starts at most %s late", after.Round(time.Second), late), ""); err != nil {
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

// start starts one plan. A claimed schedule is ended even where ctx ends meanwhile.
func (l *Library) start(ctx context.Context, o dbsqlc.Schedule) error {
	if n, err := l.cfg.Store.ClaimSchedule(ctx, o.ID); err != nil || n == 0 {
		return err // cancelled meanwhile
	}
	ahead := l.cfg.Ahead()
	campaign, problems, err := l.cfg.Start(ctx, fileOf(o.Plan), o.PlanText, o.Name)
	if ctx.Err() != nil && campaign == "" {
		return ctx.Err() // the next start of the orchestrator resolves it
	}
	keep := context.WithoutCancel(ctx)
	switch {
	case err != nil:
		_, err = l.end(keep, o.ID, starting, Failed, err.Error(), "")
	case len(problems) > 0:
		_, err = l.end(keep, o.ID, starting, Failed, strings.Join(problems, "\n"), "")
	default:
		message := ""
		if len(ahead) > 0 {
			message = "waits for the runs that were under way then: " + strings.Join(ahead, ", ")
		}
		_, err = l.end(keep, o.ID, starting, Started, cmp.Or(message, o.Message), campaign)
	}
	return err
}
