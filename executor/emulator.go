package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/internal/radiocontrol"
)

// Times of calls to the emulated radio.
const (
	radioTimeout = 10 * time.Second // of one call
	endTimeout   = 30 * time.Second // of the one that ends a trial: the emulator waits until the air is quiet
	radioAgain   = 500 * time.Millisecond
	drainTime    = 20 * time.Second // for what the trial before has left in slow radios; then their queues are emptied
	quietLimit   = 5 * time.Minute
	// quietAfter is for how long the radios are quiet before a trial where the attempt
	// before did not end in order: an end that has not heard so sends again within a
	// second, which is SCTP's shortest timeout (RFC 9260, section 16).
	quietAfter = 1500 * time.Millisecond
	quietSaid  = 5 * time.Second // longer waits are in the log
)

// emulator is the emulated radio in a run. With a nil radio, as on real radios,
// every call does nothing.
type emulator struct{ *node }

func (e *emulator) configure(ctx context.Context) error {
	if e.Radio == nil || e.sheet.Network == nil {
		return nil
	}
	return e.retry(ctx, func(ctx context.Context) error { return e.Radio.Configure(ctx, e.sheet.Network) })
}

// retry repeats a call to the emulator, which may be starting again, for
// peerLimit at most.
func (e *emulator) retry(ctx context.Context, call func(context.Context) error) error {
	began := e.Clock.Now()
	for tries := 1; ; tries++ {
		cctx, cancel := context.WithTimeout(ctx, radioTimeout)
		err := call(cctx)
		cancel()
		// A refusal may come from an emulator that lost its configuration; a
		// second one will not go away.
		refused := errors.Is(err, ErrRadioRefused) && tries > 1
		if err == nil || refused || ctx.Err() != nil || e.Clock.Now().Sub(began) > peerLimit {
			return err
		}
		e.log.Warn("call to the emulated radio failed", "error", err)
		backoff.SleepOn(ctx, e.Clock, radioAgain)
	}
}

// quiet waits until the radios carry nothing any more of the trials before, or ctx ends;
// inOrder: both ends closed the connections of the last one. On real radios it cannot be
// known.
//
// A sender that sends again without need can fill a slow radio's queue for minutes, and
// its close finds no room there. What is left after drainTime is removed. The other end
// then hears that nobody is there any more as soon as it sends something.
func (e *emulator) quiet(ctx context.Context, inOrder bool) {
	r, ok := e.Radio.(RadioSettler)
	if !ok {
		return
	}
	q := radiocontrol.Quiet{}
	if !inOrder {
		q.For = quietAfter
	}
	began, emptied := e.Clock.Now(), false
	for ctx.Err() == nil {
		q.Flush = !emptied && e.Clock.Now().Sub(began) >= drainTime
		emptied = emptied || q.Flush
		cctx, cancel := context.WithTimeout(ctx, radioTimeout)
		quiet, err := r.Quiet(cctx, q)
		cancel()
		if err != nil {
			return // begin meets the same, and says it
		}
		waited := e.Clock.Now().Sub(began)
		if quiet {
			if waited > quietSaid {
				e.log.Info("waited until the emulated radios had carried what the trial before left", "for", waited, "queues_emptied", emptied)
			}
			return
		}
		if waited > quietLimit {
			e.log.Warn("the emulated radios still carry packets of earlier trials; the next one begins among them", "after", waited)
			return
		}
	}
}

// begin starts the channel of a trial; capture names its packet log, empty for none. flows
// are those of the attempt, of which the trial's come first.
func (e *emulator) begin(ctx context.Context, name string, trial *runsheet.Trial, flows []*flow, capture string) error {
	if e.Radio == nil {
		return ctx.Err()
	}
	b := radiocontrol.Begin{Trial: name, Seed: trial.ChannelSeed, Capture: capture,
		Listeners: radiocontrol.PortRange{First: runsheet.FirstPort, Last: runsheet.LastPort}}
	if e.Host != nil {
		b.TolerateLate = TolerableLateness(e.sheet.Network)
	}
	if w := runsheet.WindowLength(trial.Flows); w > 0 {
		b.Window = w + e.tolerance.Of(w)
	}
	for i, f := range trial.Flows {
		size := f.SizeBytes
		if f.Duration > 0 {
			size = 0 // a flow bounded by time has no Ideal: its size is only a bound
		}
		b.Flows = append(b.Flows, radiocontrol.Flow{From: f.From, To: f.To, SizeBytes: size, Recut: e.recut(&f), Ports: flows[i].ports()})
	}
	failed := false
	err := e.retry(ctx, func(ctx context.Context) error {
		// An emulator that was started again has lost its configuration.
		if failed && e.sheet.Network != nil {
			if err := e.Radio.Configure(ctx, e.sheet.Network); err != nil {
				return err
			}
		}
		failed = true
		return e.Radio.Begin(ctx, b)
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the emulated radios do not answer: %w", err)
	}
	return err
}

// recut reports whether a flow passes a relay process between its ends.
func (e *emulator) recut(f *runsheet.Flow) bool {
	return slices.ContainsFunc(e.sheet.Treatment(f.Treatment).Passes(f.From), func(v runsheet.Via) bool { return v.At != f.From && v.At != f.To })
}

// end ends the channel of a trial, also where the run was aborted.
func (e *emulator) end(ctx context.Context, name string) (*radiocontrol.Report, error) {
	if e.Radio == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	report, err := e.Radio.End(ctx, name)
	if report != nil && err != nil {
		// The trial itself is fine: a packet log could not be completed.
		e.log.Warn("emulated radio reported a trial with a reservation", "error", err)
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("the emulated radios ended or stopped answering during the attempt: %w", err)
	}
	return report, nil
}
