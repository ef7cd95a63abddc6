package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// attempts executes attempts at trials, one after the other, and keeps what one
// leaves for the next.
type attempts struct {
	node     *node
	emulator *emulator
	paths    *pathCheck
	prestart *prestart
	dead     deadTime
	inOrder  bool // the last one succeeded, so both ends closed its connections
}

// run executes a trial once, as its nth attempt; next is the attempt that
// follows if this one is the trial's last, nil for none. An error means that the
// journal is unusable.
func (a *attempts) run(ctx context.Context, trial *runsheet.Trial, n int, next *attemptID) (*journal.AttemptEnded, error) {
	a.emulator.quiet(ctx, a.inOrder)
	a.inOrder = false
	clock, record := a.node.Clock, a.node.record
	began := clock.Now()
	start := journal.AttemptStarted{Trial: trial.Index, Attempt: n, Iteration: trial.Iteration, Treatment: trial.Treatment}
	flows := newFlows(a.node, trial.Index, n)
	transfers, probes := bulk(flows)
	for _, f := range transfers {
		start.Transfers = append(start.Transfers, f.id)
	}
	for _, f := range probes {
		start.Probes = append(start.Probes, f.id)
	}
	if next != nil {
		a.prestart.during(ctx, flows, *next)
	}
	record.append(journal.TypeAttemptStarted, start)
	// The record is synced before the channel's clock starts, so that the time
	// a disk takes does not shift a treatment against its channel realisation.
	if err := record.sync(); err != nil {
		return nil, err
	}
	end := journal.AttemptEnded{Trial: trial.Index, Attempt: n, Iteration: trial.Iteration, Treatment: trial.Treatment}
	measured := a.node.measureHost()
	if reason, err := a.runFlows(ctx, trial, n, flows, &end); err != nil {
		verdict := journal.Invalid
		var driver *ListenerError
		if errors.As(err, &driver) {
			verdict, reason = driver.verdict(), driver.Reason
		}
		for _, f := range flows {
			if f.result.Verdict != journal.Aborted {
				f.result.Verdict, f.result.Reason, f.result.Message = verdict, reason, clip(err.Error())
			}
		}
	}
	// Whatever the flows measured: their drivers were started and their events read late.
	if o, _ := a.node.stallSince(began); o.Text != "" {
		for _, f := range flows {
			f.excuse(journal.ReasonStopped, o.Text)
		}
	}
	end.Duration = clock.Now().Sub(began)
	measured(&end)
	a.node.holdHost(flows, &end)
	summarize(&end, flows, record)
	if a.inOrder = end.Verdict == journal.Succeeded; a.inOrder {
		a.paths.seen(trial)
	}
	end.Dead = a.dead.before(flows)
	truncate(&end)
	record.append(journal.TypeAttemptEnded, end)
	return &end, record.sync()
}

// runFlows runs the flows of an attempt, on every node where some start. An
// error, with its reason, makes all of them invalid, or of a listener's driver failed.
func (a *attempts) runFlows(ctx context.Context, trial *runsheet.Trial, n int, flows []*flow, end *journal.AttemptEnded) (reason string, err error) {
	var drivers func()
	var preparing sync.WaitGroup
	preparing.Go(func() { drivers = a.prestart.prepare(ctx, flows, attemptID{trial.Index, n}) })
	sources, reason, err := assign(ctx, a.node, trial, n)
	preparing.Wait()
	defer drivers()
	if err == nil {
		if err = a.node.awaitListeners(ctx, trial); err != nil {
			closeSources(sources)
			reason = journal.ReasonRelayDown
		}
	}
	if err != nil {
		abortAll(ctx, flows)
		return reason, err
	}
	defer closeSources(sources)
	name := fmt.Sprintf("%s/%d/%d", a.node.RunID, trial.Index, n)
	opened, before := a.node.Clock.Now(), a.node.count() // before the channel's clock starts
	if err := a.emulator.begin(ctx, name, trial, flows, a.capture(trial.Index, n)); err != nil {
		abortAll(ctx, flows)
		return journal.ReasonRadioDown, err
	}
	began := a.node.Clock.Now()
	control, timed, answered := a.node.countControl(), a.node.timePackets(flows), a.node.countAnswers(flows)
	relays := a.node.listenersNow(trial)
	watch, fctx := watchApparatus(ctx, a.node, trial, sources)
	defer watch.close()
	own := a.runEverywhere(fctx, flows, sources, began)
	end.Control = control()
	watch.settle(ctx, flows)
	a.node.nameCrashes(relays, flows)
	a.paths.judge(ctx, trial, flows, began)
	if c := end.Control; c != nil && c.Packets > 0 {
		for _, f := range flows {
			f.excuse(journal.ReasonControl, controlText(c))
		}
	}
	a.node.holdCounters(ctx, own, before)
	timed()
	answered()
	end.Radio, err = a.emulator.end(ctx, name)
	a.node.holdRadio(flows, end.Radio, opened)
	a.node.holdAir(flows, end.Radio)
	if end.Radio != nil && end.Radio.Stalled > 0 {
		for _, f := range flows {
			f.excuse(journal.ReasonRadioDown, fmt.Sprintf("the emulated radio did not run for %.1f s during the attempt", end.Radio.Stalled.Seconds()))
		}
	}
	return journal.ReasonRadioDown, err
}

// runEverywhere runs flows on the nodes on which they start, and returns this node's own
// when all have ended.
func (a *attempts) runEverywhere(ctx context.Context, flows []*flow, sources map[radio.Role]Source, began time.Time) (own []*flow) {
	var running sync.WaitGroup
	stop := beside(flows)
	defer stop()
	own = flows
	for role, s := range sources {
		var there []*flow
		there, own = split(own, role)
		running.Go(func() {
			runRemote(ctx, a.node, s, began, there)
			for _, f := range there {
				f.over()
			}
		})
	}
	runAll(ctx, own, began)
	running.Wait()
	return own
}

// abortAll aborts flows that have not begun, where ctx has ended.
func abortAll(ctx context.Context, flows []*flow) {
	if ctx.Err() == nil {
		return
	}
	for _, f := range flows {
		f.abort(ctx)
	}
}

func (a *attempts) capture(trial, attempt int) string {
	if !a.node.sheet.Capture || a.node.CaptureFile == nil {
		return ""
	}
	return a.node.CaptureFile(trial, attempt)
}

// summarize makes an attempt's outcome of its flows', and records their breaches
// of the contract.
func summarize(end *journal.AttemptEnded, flows []*flow, record *recorder) {
	end.Verdict = journal.Succeeded
	transfers, _ := bulk(flows)
	for _, f := range flows {
		// A probe decides only where it is alone.
		if (!f.probe || len(transfers) == 0) && severity[f.result.Verdict] > severity[end.Verdict] {
			end.Verdict, end.Reason, end.Message = f.result.Verdict, f.result.Reason, f.result.Message
		}
		for _, breach := range f.breaches {
			record.append(journal.TypeDriverMisbehaved, journal.Misbehaviour{
				Treatment: f.spec.Treatment, Trial: &f.trial, Attempt: f.attempt, Flow: &f.index, Message: clip(breach), Log: tail(f.log, MaxLog/len(flows))})
		}
		if f.probe {
			end.Probes = append(end.Probes, f.result)
		} else {
			end.Flows = append(end.Flows, f.result)
		}
	}
	for i, f := range flows {
		if end.Verdict == journal.Succeeded && f.result.Verdict == journal.Succeeded {
			continue // of an attempt that succeeded, a probe's that failed
		}
		log := tail(f.log, MaxLog/len(flows))
		if len(flows) > 1 && log != "" {
			log = fmt.Sprintf("--- flow %d (%s)\n%s", i, f.spec.Treatment, log)
		}
		end.Log += log
	}
}

// truncate drops what a driver can make large until the record can be written.
func truncate(end *journal.AttemptEnded) {
	b, err := json.Marshal(end)
	if err == nil && len(b) < journal.MaxRecord-4096 {
		return
	}
	end.Log = tail(end.Log, 4096)
	for _, f := range slices.Concat(pointers(end.Flows), pointers(end.Probes)) {
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

func pointers[T any](all []T) []*T {
	out := make([]*T, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}

// deadTime measures the time between attempts in which no driver runs, without
// the pauses that the plan or a person asked for.
type deadTime struct {
	lastExit time.Time     // of the last driver process
	paused   time.Duration // since then
}

// pause leaves out a pause of d.
func (d *deadTime) pause(p time.Duration) { d.paused += p }

// before is the time from the exit of the last driver process before these
// flows to the moment the first driver of theirs was about to connect.
func (d *deadTime) before(flows []*flow) time.Duration {
	var ready, exited time.Time
	for _, f := range flows {
		if !f.ready.IsZero() && (ready.IsZero() || f.ready.Before(ready)) {
			ready = f.ready
		}
		if f.exited.After(exited) {
			exited = f.exited
		}
	}
	dead := time.Duration(0)
	if !ready.IsZero() && !d.lastExit.IsZero() {
		dead = max(0, ready.Sub(d.lastExit)-d.paused)
	}
	if !exited.IsZero() {
		d.lastExit, d.paused = exited, 0
	}
	return dead
}
