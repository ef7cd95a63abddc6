package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// Lead walks through the sheet: every trial without a terminal record, in
// order, each attempt after the other. It returns nil when the journal holds
// its run-ended record, whether the run was completed, aborted or stopped for
// want of disk space; the cause of the context when it was interrupted; and
// any other error when the journal or the sheet cannot be used.
func Lead(ctx context.Context, cfg Config) error {
	p, err := begin(ctx, cfg)
	if p == nil || err != nil {
		return err
	}
	l := &leader{part: p}
	if err := l.closeInterrupted(); err != nil {
		return err
	}
	if p.Go != nil {
		select {
		case <-p.Go:
		case <-ctx.Done():
			return p.stopped(ctx)
		}
	}
	if p.Leading != nil {
		p.Leading(ctx)
	}
	if p.Radio != nil && p.sheet.Network != nil {
		if err := l.configure(ctx); err != nil {
			if ctx.Err() != nil {
				return p.stopped(ctx)
			}
			return p.end(ctx, journal.RunEnded{End: journal.RunStopped, Reason: clip("emulated radio: " + err.Error())})
		}
	}
	return l.walk(ctx)
}

type leader struct {
	*part
	lastExit   time.Time     // of the last driver process
	prestarted *prestarted   // drivers of the next trial; nil where none are readied
	paused     time.Duration // since then, because the plan wants a pause
}

// closeInterrupted gives an attempt that an earlier start left open its terminal record.
func (l *leader) closeInterrupted() error {
	o := l.past.open
	if o == nil {
		return nil
	}
	e := journal.AttemptEnded{
		Trial: o.Trial, Attempt: o.Attempt, Iteration: o.Iteration, Treatment: o.Treatment,
		Verdict: journal.Aborted, Reason: ReasonInterrupted, Message: "the agent ended while the attempt ran",
	}
	t := l.past.trial(o.Trial)
	if t.skip {
		e.Reason, e.Message = ReasonSkipped, errSkipped.Error()
	}
	for i, id := range o.Transfers {
		f := journal.FlowResult{Flow: i, Treatment: o.Treatment, Transfer: id, Verdict: journal.Aborted, Reason: e.Reason}
		if o.Trial >= 0 && o.Trial < len(l.sheet.Trials) && i < len(l.sheet.Trials[o.Trial].Flows) {
			f.Treatment = l.sheet.Trials[o.Trial].Flows[i].Treatment
		}
		e.Flows = append(e.Flows, f)
	}
	l.append(journal.TypeAttemptEnded, e)
	t.close(e.Verdict, e.Reason)
	l.past.open = nil
	return l.sync()
}

// walk takes one trial after the other until none is left.
func (l *leader) walk(ctx context.Context) error {
	defer func() {
		if l.prestarted != nil {
			l.prestarted.drop()
		}
	}()
	first, rested := true, false
	for {
		if err := l.boundary(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return l.stopped(ctx)
		}
		i, ok := l.next()
		if !ok {
			return l.end(ctx, journal.RunEnded{End: journal.RunCompleted})
		}
		if !first && !rested && l.sheet.Limits.Pause > 0 {
			began := l.Clock.Now()
			backoff.SleepOn(ctx, l.Clock, l.sheet.Limits.Pause)
			l.paused += l.Clock.Now().Sub(began)
			rested = true
			continue // orders may have come meanwhile
		}
		if over, err := l.trial(ctx, i); over || err != nil {
			return err
		}
		first, rested = false, false
		if _, more := l.next(); l.Between != nil && (more || l.Commands != nil) {
			l.Between(ctx)
		}
	}
}

// next is the trial to go on with: one that was begun, then those that are to
// be repeated, then the sheet's.
func (l *leader) next() (trial int, ok bool) {
	for _, begun := range []bool{true, false} {
		if !begun && len(l.past.repeats) > 0 {
			return l.past.repeats[0], true
		}
		for i := range l.sheet.Trials {
			if t := l.past.trial(i); !t.ended && !t.repeat && (!begun || t.attempts > 0) {
				return i, true
			}
		}
	}
	return 0, false
}

// trial executes one trial to its terminal record. True: the run is over, or
// was interrupted.
func (l *leader) trial(ctx context.Context, i int) (over bool, err error) {
	t := l.past.trial(i)
	for {
		if err := l.applySkip(i); err != nil {
			return true, err
		}
		if t.over(l.sheet.Limits.Attempts) {
			return false, l.endTrial(i)
		}
		if ctx.Err() != nil {
			return true, l.stopped(ctx)
		}
		if err := l.Journal.CheckSpace(); err != nil {
			return true, l.outOfSpace(ctx, err)
		}
		t.attempts++
		v, reason, err := l.attemptUnlessSkipped(ctx, i, t.attempts)
		if err != nil {
			return true, err
		}
		if v == journal.Aborted && ctx.Err() != nil {
			return true, l.stopped(ctx)
		}
		t.close(v, reason)
	}
}

func (l *leader) endTrial(i int) error {
	t := l.past.trial(i)
	v, reason := t.verdict()
	l.append(journal.TypeTrialEnded, journal.TrialEnded{Trial: i, Attempts: t.attempts, Verdict: v, Reason: reason})
	l.past.end(i)
	return l.sync()
}

func (l *leader) outOfSpace(ctx context.Context, err error) error {
	if !errors.Is(err, journal.ErrDiskFull) {
		return err
	}
	return l.end(ctx, journal.RunEnded{End: journal.RunStopped, Reason: err.Error()})
}

// attempt executes a trial once. An error means that the journal is unusable.
func (l *leader) attempt(ctx context.Context, trial *runsheet.Trial, n int) (journal.Verdict, string, error) {
	began := l.Clock.Now()
	start := journal.AttemptStarted{Trial: trial.Index, Attempt: n, Iteration: trial.Iteration, Treatment: trial.Treatment}
	flows := l.flows(trial.Index, n)
	for _, f := range flows {
		start.Transfers = append(start.Transfers, f.id)
	}
	l.prestartNext(ctx, trial.Index, flows)
	l.append(journal.TypeAttemptStarted, start)
	// The record is synced before the channel's clock starts, so that the time
	// a disk takes does not shift a treatment against its channel realisation.
	if err := l.sync(); err != nil {
		return "", "", err
	}
	end := journal.AttemptEnded{Trial: trial.Index, Attempt: n, Iteration: trial.Iteration, Treatment: trial.Treatment}
	name := fmt.Sprintf("%s/%d/%d", l.RunID, trial.Index, n)
	if reason, err := l.carry(ctx, name, trial, n, flows, &end); err != nil {
		for _, f := range flows {
			if f.result.Verdict != journal.Aborted {
				f.result.Verdict, f.result.Reason, f.result.Message = journal.Invalid, reason, clip(err.Error())
			}
		}
	}
	l.sum(&end, flows)
	end.Duration = l.Clock.Now().Sub(began)
	l.dead(&end, flows)
	fit(&end)
	l.append(journal.TypeAttemptEnded, end)
	return end.Verdict, end.Reason, l.sync()
}

// carry has the flows of an attempt carried, on every node where some start. An
// error, with its reason, spoils all of them.
func (l *leader) carry(ctx context.Context, name string, trial *runsheet.Trial, n int, flows []*flow, end *journal.AttemptEnded) (reason string, err error) {
	spoiled := func() {
		for _, f := range flows {
			if ctx.Err() != nil {
				f.abort(ctx)
			}
		}
	}
	var drivers func()
	var readying sync.WaitGroup
	readying.Go(func() { drivers = l.ready(ctx, trial.Index, n, flows) })
	sources, err := l.prepare(ctx, trial, n)
	readying.Wait()
	defer drivers()
	if err != nil {
		spoiled()
		return ReasonSourceDown, err
	}
	defer release(sources)
	if err := l.radioBegin(ctx, name, trial, n); err != nil {
		spoiled()
		return ReasonRadioDown, err
	}
	began := l.Clock.Now()
	var running sync.WaitGroup
	own := flows
	for role, s := range sources {
		var theirs []*flow
		theirs, own = split(own, role)
		running.Go(func() { l.carried(ctx, s, began, theirs) })
	}
	runAll(ctx, own, began)
	running.Wait()
	end.Radio, err = l.radioEnd(ctx, name)
	return ReasonRadioDown, err
}

// split takes the flows that start on one role out of others.
func split(flows []*flow, role radio.Role) (theirs, rest []*flow) {
	for _, f := range flows {
		if f.spec.From == role {
			theirs = append(theirs, f)
		} else {
			rest = append(rest, f)
		}
	}
	return theirs, rest
}

// severity orders verdicts: an attempt of several flows has the gravest.
var severity = map[journal.Verdict]int{journal.Succeeded: 0, journal.TimedOut: 1, journal.Failed: 2, journal.Invalid: 3, journal.Aborted: 4}

func (l *leader) sum(end *journal.AttemptEnded, flows []*flow) {
	end.Verdict = journal.Succeeded
	for _, f := range flows {
		if severity[f.result.Verdict] > severity[end.Verdict] {
			end.Verdict, end.Reason, end.Message = f.result.Verdict, f.result.Reason, f.result.Message
		}
		for _, note := range f.notes {
			l.append(journal.TypeDriverMisbehaved, journal.Misbehaviour{Treatment: f.spec.Treatment, Message: clip(note), Log: tail(f.log, MaxLog/len(flows))})
		}
		end.Flows = append(end.Flows, f.result)
	}
	if end.Verdict == journal.Succeeded {
		return
	}
	for i, f := range flows {
		log := tail(f.log, MaxLog/len(flows))
		if len(flows) > 1 && log != "" {
			log = fmt.Sprintf("--- flow %d (%s)\n%s", i, f.spec.Treatment, log)
		}
		end.Log += log
	}
}

func tail(s string, n int) string {
	if len(s) > n {
		return s[len(s)-n:]
	}
	return s
}

// dead counts from the end of the last driver process before this attempt to
// the moment the first driver of this one was about to connect.
func (l *leader) dead(end *journal.AttemptEnded, flows []*flow) {
	var ready, exited time.Time
	for _, f := range flows {
		if !f.ready.IsZero() && (ready.IsZero() || f.ready.Before(ready)) {
			ready = f.ready
		}
		if f.exited.After(exited) {
			exited = f.exited
		}
	}
	if !ready.IsZero() && !l.lastExit.IsZero() {
		end.Dead = max(0, ready.Sub(l.lastExit)-l.paused)
	}
	if !exited.IsZero() {
		l.lastExit, l.paused = exited, 0
	}
}

// fit drops what a driver can make large until the record can be written.
func fit(end *journal.AttemptEnded) {
	b, err := json.Marshal(end)
	if err == nil && len(b) < journal.MaxRecord-4096 {
		return
	}
	end.Log = tail(end.Log, 4096)
	for i := range end.Flows {
		f := &end.Flows[i]
		if f.LastSample != nil {
			f.LastSample.More = nil
		}
		if f.Result != nil {
			f.Result.Info = nil
			if f.Result.Final != nil {
				f.Result.Final.More = nil
			}
		}
	}
}

func (l *leader) configure(ctx context.Context) error {
	return l.patiently(ctx, func(ctx context.Context) error { return l.Radio.Configure(ctx, l.sheet.Network) })
}

// patiently repeats a call to the emulator, which may be starting again, for
// radioPatience at most.
func (l *leader) patiently(ctx context.Context, call func(context.Context) error) error {
	began := l.Clock.Now()
	for tries := 1; ; tries++ {
		cctx, cancel := context.WithTimeout(ctx, radioTimeout)
		err := call(cctx)
		cancel()
		// A refusal may come from an emulator that lost its configuration; a
		// second one will not go away.
		refused := errors.Is(err, ErrRadioRefused) && tries > 1
		if err == nil || refused || ctx.Err() != nil || l.Clock.Now().Sub(began) > radioPatience {
			return err
		}
		l.Logger.Warn("emulated radio does not answer as it should", "error", err)
		backoff.SleepOn(ctx, l.Clock, 500*time.Millisecond)
	}
}

func (l *leader) radioBegin(ctx context.Context, name string, trial *runsheet.Trial, n int) error {
	if l.Radio == nil {
		return ctx.Err()
	}
	b := radiocontrol.Begin{Trial: name, Seed: trial.ChannelSeed}
	for _, f := range trial.Flows {
		size := f.SizeBytes
		if f.Duration > 0 {
			size = 0 // what a time bounds has no Ideal: its size is only a bound
		}
		b.Flows = append(b.Flows, radiocontrol.Flow{From: f.From, To: f.To, SizeBytes: size})
	}
	if l.sheet.Capture && l.CaptureFile != nil {
		b.Capture = l.CaptureFile(trial.Index, n)
	}
	failed := false
	return l.patiently(ctx, func(ctx context.Context) error {
		// An emulator that was started again knows nothing of the sheet.
		if failed && l.sheet.Network != nil {
			if err := l.Radio.Configure(ctx, l.sheet.Network); err != nil {
				return err
			}
		}
		failed = true
		return l.Radio.Begin(ctx, b)
	})
}

// radioEnd also ends a trial whose run was aborted.
func (l *leader) radioEnd(ctx context.Context, name string) (*radiocontrol.Report, error) {
	if l.Radio == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), radioTimeout)
	defer cancel()
	report, err := l.Radio.End(ctx, name)
	if report != nil && err != nil {
		// The trial itself is fine: a packet log could not be completed.
		l.Logger.Warn("emulated radio reported a trial with a reservation", "error", err)
		err = nil
	}
	return report, err
}

// Attend is a relay's part: its journal holds provenance and clock, and ends
// when the run is finished or aborted.
func Attend(ctx context.Context, cfg Config) error {
	p, err := begin(ctx, cfg)
	if p == nil || err != nil {
		return err
	}
	ordersEnd := p.takeAssignments(ctx)
	<-ctx.Done()
	ordersEnd()
	return p.stopped(ctx)
}
