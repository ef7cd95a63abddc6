package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// flow is one transfer of an attempt on its leading node, from the start of
// its client process to that process's end.
type flow struct {
	p       *part
	trial   int
	attempt int
	index   int
	spec    runsheet.Flow
	id      string

	result  journal.FlowResult
	decided bool
	// connected: the connection stands, and the transfer's limit counts.
	connected bool
	samples   batch
	ready     time.Time // when the driver was about to connect
	exited    time.Time
	log       string
	notes     []string // breaches of the contract that did not decide anything
	settled   func()   // told of the outcome while the driver still runs; can be nil
}

// newFlow is a flow of a trial of the sheet, not yet decided.
func newFlow(p *part, trial, attempt, index int) *flow {
	spec := p.sheet.Trials[trial].Flows[index]
	id := runsheet.TransferID(p.RunID, trial, attempt, index).String()
	return &flow{
		p: p, trial: trial, attempt: attempt, index: index, spec: spec, id: id,
		result:  journal.FlowResult{Flow: index, Treatment: spec.Treatment, Transfer: id},
		samples: batch{head: journal.Samples{Trial: trial, Attempt: attempt, Flow: index, Side: "client"}},
	}
}

// runAll runs flows of one node, each at its own time after the trial's
// beginning, and returns when all have ended.
func runAll(ctx context.Context, flows []*flow, began time.Time) {
	var running sync.WaitGroup
	for _, f := range flows {
		running.Go(func() { f.run(ctx, began) })
	}
	running.Wait()
}

// ready has the drivers of those of the flows prepared that start on this node,
// where the runner can.
func (p *part) ready(ctx context.Context, flows []*flow) (release func()) {
	runner, ok := p.Runner.(Preparer)
	if !ok {
		return func() {}
	}
	releases := make([]func(), len(flows))
	var all sync.WaitGroup
	for i, f := range flows {
		releases[i] = func() {}
		if f.spec.From == p.Role && ctx.Err() == nil {
			all.Go(func() { releases[i] = runner.Prepare(ctx, p.sheet.Treatment(f.spec.Treatment).Protocol, f.id) })
		}
	}
	all.Wait()
	return func() {
		for _, r := range releases {
			r()
		}
	}
}

// decide sets the outcome; the first one counts.
func (f *flow) decide(v journal.Verdict, reason, message string) {
	if f.decided {
		return
	}
	f.decided = true
	f.result.Verdict, f.result.Reason, f.result.Message = v, reason, clip(message)
}

// run blocks until the client's process has gone: at most the flow's start
// offset, the sheet's connect and transfer limits and the grace periods.
func (f *flow) run(ctx context.Context, began time.Time) {
	defer func() {
		if f.exited.IsZero() {
			f.exited = f.p.Clock.Now()
		}
		if f.result.Verdict != journal.Succeeded {
			f.result.LastSample = f.samples.last
		}
	}()
	if f.spec.From != f.p.Role {
		f.decide(journal.Failed, ReasonElsewhere, fmt.Sprintf("the flow starts on the %s, this node is the %s", f.spec.From, f.p.Role))
		return
	}
	if !backoff.SleepOn(ctx, f.p.Clock, began.Add(f.spec.Start).Sub(f.p.Clock.Now())) {
		f.abort(ctx)
		return
	}
	t := f.p.sheet.Treatment(f.spec.Treatment)
	q := f.p.parameters(t, contract.RoleClient)
	q.Local.Address = f.p.ownAddress()
	q.Remote = contract.Endpoint{Address: f.p.addressOf(f.spec.To), Port: t.Port}
	q.Transfer = contract.Transfer{ID: f.id, SizeBytes: f.spec.SizeBytes, Seed: f.spec.PayloadSeed, DurationMS: ceilMS(f.spec.Duration)}
	if t.CompleteKnowledge && f.p.sheet.Network != nil {
		q.Link = link(f.p.sheet.Network, f.spec.From, f.spec.To)
	}
	started := f.p.Clock.Now()
	proc, err := f.p.Runner.Start(ctx, t.Protocol, q)
	if err != nil {
		reason := ReasonNoStart
		if errors.Is(err, ErrNoDriver) {
			reason = string(contract.CodeUnsupported)
		}
		f.decide(journal.Failed, reason, err.Error())
		return
	}
	f.ready = started
	f.watch(ctx, proc, started)
	f.log = proc.Log()
}

func (f *flow) abort(ctx context.Context) {
	var abort *AbortError
	if errors.As(context.Cause(ctx), &abort) {
		f.decide(journal.Aborted, ReasonAborted, abort.Reason)
		return
	}
	if errors.Is(context.Cause(ctx), errSkipped) {
		f.decide(journal.Aborted, ReasonSkipped, errSkipped.Error())
		return
	}
	f.decide(journal.Aborted, ReasonInterrupted, "the agent was stopped")
}

func (f *flow) watch(ctx context.Context, proc Process, started time.Time) {
	events := listen(proc.Output(), f.p.Clock)
	end := &ender{proc: proc, clock: f.p.Clock}
	defer end.release()
	limits := f.p.sheet.Limits
	end.in(limits.Connect + limitGrace)
	limit := contract.CodeConnectTimeout
	done, cancelled := proc.Done(), ctx.Done()
	stopping := false // by ctx: what the driver still says of a result counts
	for events != nil || done != nil {
		select {
		case h, ok := <-events:
			switch {
			case !ok:
				events = nil
			case h.event == nil:
				if f.decided {
					f.notes = append(f.notes, h.reason+" after the outcome: "+h.message)
				}
				f.decide(journal.Failed, h.reason, h.message)
				end.kill()
			default:
				was := f.decided
				if stopping && h.event.Event == contract.KindError {
					f.abort(ctx)
				}
				if f.take(h) {
					limit = contract.CodeTransferTimeout
					end.in(limits.Transfer + limitGrace)
				}
				if f.decided && !was && f.settled != nil {
					f.settled()
				}
				if f.decided && !was && !end.asked {
					end.in(exitGrace)
				}
			}
		case <-end.fired:
			if !f.decided && !stopping {
				f.decide(journal.TimedOut, string(limit), fmt.Sprintf("the limit of %s passed and the driver did not say so itself",
					map[contract.Code]time.Duration{contract.CodeConnectTimeout: limits.Connect, contract.CodeTransferTimeout: limits.Transfer}[limit]))
			} else if f.decided && !end.asked {
				f.notes = append(f.notes, fmt.Sprintf("did not exit within %s of its last event", exitGrace))
			}
			end.step()
		case <-cancelled:
			cancelled, stopping = nil, true
			if !end.asked {
				end.step()
			}
		case <-done:
			done = nil
			f.exited = f.p.Clock.Now()
		}
	}
	f.samples.flush(f.p)
	if stopping {
		f.abort(ctx)
	}
	exit := proc.Exit()
	switch {
	case exit.Flooded:
		f.decide(journal.Failed, ReasonFlood, "standard error came faster than a log may")
	case exit.Code == contract.ExitUnsupported:
		f.decide(journal.Failed, string(contract.CodeUnsupported), "the driver says that it cannot run on this node")
	}
	f.decide(journal.Failed, ReasonExited, "the driver ended without a result: "+exit.String())
	if f.result.Verdict == journal.Succeeded && !end.asked && exit.Code != contract.ExitOK {
		f.notes = append(f.notes, "reported a result and ended with "+exit.String())
	}
}

// take notes an event; true when the connection now stands.
func (f *flow) take(h driverLine) (connected bool) {
	e := h.event
	if e.Transfer != "" && e.Transfer != f.id {
		f.decide(journal.Failed, ReasonWrongResult, fmt.Sprintf("%s event of transfer %s, expected %s", e.Event, e.Transfer, f.id))
		return false
	}
	switch e.Event {
	case contract.KindReady:
		f.ready = f.p.Clock.Now()
	case contract.KindConnected:
		if f.decided || f.connected {
			return false
		}
		f.connected = true
		f.result.ConnectNS = e.ConnectNS
		if f.p.Role == radio.RoleClient { // what a run has of attempts comes from the leading node
			f.p.append(journal.TypeConnected, journal.Connected{Trial: f.trial, Attempt: f.attempt, Flow: f.index, ConnectNS: e.ConnectNS})
		}
		return true
	case contract.KindSample:
		f.samples.add(f.p, *e.Sample, h.size)
	case contract.KindResult:
		switch size := e.Result.SizeBytes; {
		case f.spec.Duration > 0 && size > f.spec.SizeBytes:
			f.decide(journal.Failed, ReasonWrongResult, fmt.Sprintf("a result of %d bytes, expected at most %d", size, f.spec.SizeBytes))
			return false
		case f.spec.Duration == 0 && size != f.spec.SizeBytes:
			f.decide(journal.Failed, ReasonWrongResult, fmt.Sprintf("a result of %d bytes, expected %d", size, f.spec.SizeBytes))
			return false
		}
		if !f.decided {
			f.result.Result = e.Result
			if e.Result.ConnectNS != 0 {
				f.result.ConnectNS = e.Result.ConnectNS
			}
		}
		f.decide(journal.Succeeded, "", "")
	case contract.KindError:
		v := journal.Failed
		if e.Code == contract.CodeConnectTimeout || e.Code == contract.CodeTransferTimeout {
			v = journal.TimedOut
		}
		f.decide(v, string(e.Code), e.Message)
	}
	return false
}

// clip bounds a text that came from a driver.
func clip(s string) string {
	if len(s) > 4096 {
		return s[:4096] + "…"
	}
	return s
}

// batch gathers a flow's samples into records of about a second each.
type batch struct {
	head  journal.Samples
	since time.Time
	size  int
	last  *contract.Sample
}

func (b *batch) add(p *part, s contract.Sample, size int) {
	now := p.Clock.Now()
	if len(b.head.Samples) == 0 {
		b.since = now
	}
	b.head.Samples = append(b.head.Samples, s)
	b.size += size
	b.last = &s
	if b.size >= batchBytes || now.Sub(b.since) >= batchEvery {
		b.flush(p)
	}
}

func (b *batch) flush(p *part) {
	if len(b.head.Samples) == 0 {
		return
	}
	p.append(journal.TypeSamples, b.head)
	b.head.Samples, b.size = nil, 0
}
