package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"linktrial/executor/credible"
	"linktrial/executor/driver"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/internal/payload"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// flow is one transfer of an attempt on the node that runs its client, from the
// start of that process to its end.
type flow struct {
	node    *node
	trial   int
	attempt int
	index   int
	spec    runsheet.Flow
	id      string
	probe   bool
	source  *payload.Source // of what its client is given; nil: a probe, or not started
	// load ends with the flows that a probe accompanies; nil: nothing but its own
	// duration ends it.
	load <-chan struct{}

	result    journal.FlowResult
	decided   bool // result has the outcome
	connected bool // the connection is established, and the transfer's limit counts
	samples   sampleBatch
	seen      credible.Seen
	ready     time.Time // when the driver was about to connect
	exited    time.Time
	log       string
	port      int      // of the listener at another node to which the driver connects; 0: none
	breaches  []string // of the driver contract that did not decide anything
	onOver    func()   // called at the latest when the driver has exited; can be nil
	onDecided func()   // called with the outcome known, while the driver still runs; can be nil
}

// decide sets the outcome; the first one counts.
func (f *flow) decide(v journal.Verdict, reason, message string) {
	if f.decided {
		return
	}
	f.decided = true
	f.result.Verdict, f.result.Reason, f.result.Message = v, reason, clip(message)
}

// over lets probes beside the flow end.
func (f *flow) over() {
	if f.onOver != nil {
		f.onOver()
	}
}

// downError as the cause of a cancelled context ends an attempt that a fault of the
// apparatus has made worthless.
type downError struct {
	reason, text string
	stopped      bool // values of flows that succeeded are false, too
}

func (e *downError) Error() string { return e.text }

// abort decides a flow by what ended ctx.
func (f *flow) abort(ctx context.Context) {
	var abort *AbortError
	var down *downError
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &down):
		f.decide(journal.Invalid, down.reason, down.text)
	case errors.As(cause, &abort):
		f.decide(journal.Aborted, journal.ReasonAborted, abort.Reason)
	case errors.Is(cause, errSkipped):
		f.decide(journal.Aborted, journal.ReasonSkipped, errSkipped.Error())
	default:
		f.decide(journal.Aborted, journal.ReasonInterrupted, "the agent was stopped")
	}
}

// run blocks until the client's process has exited: at most the flow's start
// offset, the sheet's connect and transfer limits and the grace periods.
func (f *flow) run(ctx context.Context, began time.Time) {
	n := f.node
	defer func() {
		f.over()
		if f.exited.IsZero() {
			f.exited = n.Clock.Now()
		}
		if f.result.Verdict != journal.Succeeded {
			f.result.LastSample = f.samples.last
		}
		f.result.RTT = f.samples.rtt.result()
	}()
	if at := f.spec.ClientAt(); at != n.Role {
		f.decide(journal.Failed, journal.ReasonElsewhere, fmt.Sprintf("the flow starts on the %s, this node is the %s", at, n.Role))
		return
	}
	if !backoff.SleepOn(ctx, n.Clock, began.Add(f.spec.Start).Sub(n.Clock.Now())) {
		f.abort(ctx)
		return
	}
	t := n.sheet.Treatment(f.spec.Treatment)
	parameters, err := f.parameters(t)
	if err != nil {
		f.decide(journal.Failed, journal.ReasonNoStart, err.Error())
		return
	}
	started := n.Clock.Now()
	var given io.Reader
	if !f.probe {
		f.source = payload.NewSource(payload.NewKey(n.secret, f.spec.PayloadSeed), f.spec.SizeBytes)
		given = f.source
	}
	p, err := n.Runner.Start(ctx, t.Protocol, parameters, given)
	if err != nil {
		if ctx.Err() != nil { // what ended it decides
			f.abort(ctx)
			return
		}
		verdict, reason := startReason(err)
		f.decide(verdict, reason, err.Error())
		return
	}
	f.ready, f.seen.Started = started, started
	c := &client{flow: f, process: p, stop: driver.NewStopper(p, n.Clock), limit: contract.CodeConnectTimeout}
	c.watch(ctx)
}

func (f *flow) parameters(t *runsheet.Treatment) (*contract.Parameters, error) {
	n := f.node
	p := n.parameters(t.Options, contract.RoleClient)
	p.Local.Address = n.ownAddress()
	p.DSCP = t.DSCP
	p.Limits.TransferMS = ceilMS(f.limit())
	at := f.spec.ClientAt()
	first := t.First(at, f.spec.ServerAt())
	p.Remote = contract.Endpoint{Address: n.addressFor(t, first.At), Port: first.Port}
	if len(t.Passes(at)) == 0 {
		p.Remote.Port = n.ports.at(first.At, journal.ListenerName{Treatment: t.Name}, first.Port)
		f.port = p.Remote.Port
	}
	if first.At == at {
		p.Device = "" // the way to the relay process is the loopback interface
	} else if err := n.radios(p, t); err != nil {
		return nil, err
	}
	p.Transfer = contract.Transfer{ID: f.id, SizeBytes: f.spec.SizeBytes, DurationMS: ceilMS(f.spec.Duration), FromServer: f.spec.FromServer()}
	if f.probe {
		p.Transfer.Seed = f.spec.PayloadSeed
	}
	if network := n.networkOf(t); t.CompleteKnowledge && network != nil {
		p.Link = linkKnowledge(network, at, first.At)
	}
	return p, nil
}

// limit bounds the flow from its connected event to its result. A probe has the
// time of the flows that it accompanies, or its own, and that of its end.
func (f *flow) limit() time.Duration {
	if !f.probe {
		return f.node.sheet.Limits.Transfer
	}
	return probeLimit(f.node.sheet, &f.node.sheet.Trials[f.trial], &f.spec)
}

// handleLine applies an event to the flow; true when it established the connection.
func (f *flow) handleLine(line driver.Line) (connected bool) {
	e := line.Event
	if e.Transfer != "" && e.Transfer != f.id {
		f.decide(journal.Failed, journal.ReasonWrongResult, fmt.Sprintf("%s event of transfer %s, expected %s", e.Event, e.Transfer, f.id))
		return false
	}
	switch e.Event {
	case contract.KindReady:
		f.ready, f.seen.Ready = f.node.Clock.Now(), line.At
	case contract.KindConnected:
		return f.connect(e.ConnectNS, line.At)
	case contract.KindSample:
		if breach := f.samples.add(*e.Sample, line.Size); breach != "" {
			f.breaches = append(f.breaches, breach)
		}
	case contract.KindResult:
		f.takeResult(e.Result, line.At)
	case contract.KindError:
		f.decide(codeVerdict(e.Code), string(e.Code), e.Message)
	}
	return false
}

func (f *flow) connect(ns int64, at time.Time) bool {
	if f.decided || f.connected {
		return false
	}
	f.connected, f.seen.Connected = true, at
	f.result.ConnectNS = ns
	if f.node.Role == radio.RoleClient { // only the leading node has records of attempts
		f.node.record.append(journal.TypeConnected, journal.Connected{Trial: f.trial, Attempt: f.attempt, Flow: f.index, ConnectNS: ns})
	}
	return true
}

func (f *flow) takeResult(r *contract.Result, at time.Time) {
	switch size := r.SizeBytes; {
	case f.probe != (r.Probe != nil):
		f.decide(journal.Failed, journal.ReasonWrongResult, "a result of a probe where a transfer was to end, or the other way round")
		return
	case f.probe:
	case f.spec.Duration > 0 && size > f.spec.SizeBytes:
		f.decide(journal.Failed, journal.ReasonWrongResult, fmt.Sprintf("a result of %d bytes, expected at most %d", size, f.spec.SizeBytes))
		return
	case f.spec.Duration == 0 && size != f.spec.SizeBytes:
		f.decide(journal.Failed, journal.ReasonWrongResult, fmt.Sprintf("a result of %d bytes, expected %d", size, f.spec.SizeBytes))
		return
	}
	if !f.decided {
		if f.source != nil {
			r.Digest = f.source.Digest(r.SizeBytes)
		}
		f.result.Result = r
		if r.ConnectNS != 0 {
			f.result.ConnectNS = r.ConnectNS
		}
		f.seen.Result = at
	}
	if wrong := f.seen.Clock(time.Duration(f.result.ConnectNS), time.Duration(r.ElapsedNS), f.node.tolerance); wrong != nil {
		f.decide(journal.Invalid, wrong.Reason, wrong.Message)
	}
	if wrong := credible.Again(r.Final, f.onOnePath(r)); wrong != nil {
		f.decide(journal.Invalid, wrong.Reason, wrong.Message)
	}
	if wrong := credible.Probe(r.Probe, time.Duration(r.ElapsedNS), f.node.tolerance); wrong != nil {
		f.decide(journal.Invalid, wrong.Reason, wrong.Message)
	}
	f.decide(journal.Succeeded, "", "")
}

// onOnePath is the payload of a transfer whose counters hold all that was sent of it; 0 of
// one over several paths, of which one that was given up takes its counts along.
func (f *flow) onOnePath(r *contract.Result) int64 {
	if f.probe || len(r.Paths) > 0 {
		return 0
	}
	return r.SizeBytes
}

// excuse makes a flow invalid because of a fault of the apparatus, whatever its
// outcome is or would have been, unless it was ended from outside. What its driver
// reported stays.
func (f *flow) excuse(reason, text string) {
	r := &f.result
	switch {
	case !f.decided:
		f.decide(journal.Invalid, reason, text)
		return
	case r.Verdict == journal.Aborted || r.Verdict == journal.Invalid && journal.ApparatusFault(r.Reason):
		return
	case r.Verdict == journal.Succeeded:
		text += "; the flow ended with a result"
	default:
		text += fmt.Sprintf("; the flow ended with %s: %s", r.Reason, r.Message)
	}
	r.Verdict, r.Reason, r.Message = journal.Invalid, reason, clip(text)
}

// countsAsFailure reports whether the outcome counts against the protocol, as it is now.
func (f *flow) countsAsFailure() bool {
	return f.result.Verdict == journal.Failed || f.result.Verdict == journal.TimedOut
}

// invalidate takes the success away from a flow whose values cannot be true.
// What its driver reported stays.
func (f *flow) invalidate(wrong *credible.Fault) {
	if wrong != nil && f.result.Verdict == journal.Succeeded {
		f.result.Verdict, f.result.Reason, f.result.Message = journal.Invalid, wrong.Reason, clip(wrong.Message)
	}
}

// carried is the payload of a flow that succeeded which must have been on the
// radio: of a probe, what arrived, because a packet may be lost before its interface.
func (f *flow) carried() int64 {
	if p := f.result.Result.Probe; p != nil {
		return p.ReceivedBytes
	}
	return f.result.Result.SizeBytes
}

// values are those of a flow that succeeded, but for its end on the channel's clock.
func (f *flow) values() credible.Flow {
	return credible.Flow{From: f.spec.From, To: f.spec.To, SizeBytes: f.carried(), Elapsed: time.Duration(f.result.Result.ElapsedNS)}
}

// client is the running client process of a flow.
type client struct {
	flow     *flow
	process  Process
	stop     *driver.Stopper
	limit    contract.Code // what it means when the stopper's time comes
	stopping bool          // by the context: a result that the driver still reports counts
	ended    bool          // a probe, with what it accompanied
	halted   bool          // something outside stopped the process for some time
}

// halt is called when something outside has stopped the process: whatever it measures
// is false from then on.
func (c *client) halt() {
	if c.halted {
		return
	}
	c.halted = true
	c.stop.Kill()
}

// watch returns when the process has exited and its output is read.
func (c *client) watch(ctx context.Context) {
	f := c.flow
	lines := driver.Lines(c.process.Output(), f.node.Clock, nil)
	defer c.stop.Release()
	c.stop.After(f.node.sheet.Limits.Connect + contract.LimitPatience)
	done, cancelled, load := c.process.Done(), ctx.Done(), f.load
	n, now, halted := c.process.Stops().State()
	if n > 0 || now { // between its start and here
		c.halt()
	}
	for lines != nil || done != nil {
		select {
		case line, ok := <-lines:
			if !ok {
				lines = nil
				continue
			}
			c.handleLine(ctx, line)
		case <-load:
			load = nil
			if !f.decided && !c.stopping { // SIGTERM ends the packets; the result still comes
				c.ended = true
				c.process.Terminate()
				c.stop.After(probeEnd + contract.LimitPatience)
			}
		case <-c.stop.Fired:
			c.timeUp()
		case <-halted:
			if n, _, halted = c.process.Stops().State(); n > 0 {
				c.halt()
			}
		case <-cancelled:
			cancelled, c.stopping = nil, true
			if !c.stop.Asked {
				c.stop.Step()
			}
		case <-done:
			done = nil
			f.exited = f.node.Clock.Now()
			if n, _, _ := c.process.Stops().State(); n > 0 {
				c.halted = true // after its last event
			}
		}
	}
	f.samples.flush()
	f.log = c.process.Log()
	if text := changed(c.process); text != "" {
		f.excuse(journal.ReasonChanged, text)
	}
	if c.halted {
		f.excuse(journal.ReasonStopped, "something other than Linktrial stopped the driver's process during the attempt")
	}
	if c.stopping {
		f.abort(ctx)
	}
	c.exited(c.process.Exit())
}

func (c *client) handleLine(ctx context.Context, line driver.Line) {
	f := c.flow
	if line.Event == nil {
		if f.decided {
			f.breaches = append(f.breaches, line.Reason+" after the outcome: "+line.Message)
		}
		f.decide(journal.Failed, line.Reason, line.Message)
		c.stop.Kill()
		return
	}
	was := f.decided
	if c.stopping && line.Event.Event == contract.KindError {
		f.abort(ctx)
	}
	if f.handleLine(line) {
		c.limit = contract.CodeTransferTimeout
		c.stop.After(f.limit() + contract.LimitPatience)
	}
	if !f.decided || was {
		return
	}
	f.over()
	if f.onDecided != nil {
		f.onDecided()
	}
	if !c.stop.Asked {
		c.stop.After(contract.ExitPatience)
	}
}

// timeUp is called when the process should have reported or exited by now.
func (c *client) timeUp() {
	f, limits := c.flow, c.flow.node.sheet.Limits
	if !f.decided && !c.stopping {
		limit := limits.Connect
		if c.limit == contract.CodeTransferTimeout {
			limit = f.limit()
		}
		f.decide(journal.TimedOut, string(c.limit), fmt.Sprintf("the limit of %s passed and the driver did not say so itself", limit))
	} else if f.decided && !c.stop.Asked {
		f.breaches = append(f.breaches, fmt.Sprintf("did not exit within %s of its last event", contract.ExitPatience))
	}
	c.stop.Step()
}

// exited decides a flow whose process ended without deciding it.
func (c *client) exited(exit Exit) {
	f := c.flow
	switch {
	case exit.Flooded:
		f.decide(journal.Failed, journal.ReasonFlood, "standard error came faster than a log may")
	case exit.Code == contract.ExitUnsupported:
		f.decide(journal.Failed, string(contract.CodeUnsupported), "the driver says that it cannot run on this node")
	case exit.outside() && !c.stop.Asked && !c.ended:
		f.decide(journal.Invalid, journal.ReasonKilled, "something other than Linktrial ended the driver's process: "+exit.String())
	}
	crash := exit.crash(f.log)
	if crash != "" {
		f.decide(journal.Failed, journal.ReasonCrashed, "the driver crashed: "+crash)
	}
	f.decide(journal.Failed, journal.ReasonExited, "the driver ended without a result: "+exit.String())
	if left := exit.leftMessage(); left != "" {
		f.breaches = append(f.breaches, left)
	}
	if f.result.Verdict == journal.Succeeded && (!c.stop.Asked || crash != "") && exit.Code != contract.ExitOK {
		f.breaches = append(f.breaches, "reported a result and ended with "+exit.String())
	}
}
