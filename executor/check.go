package executor

import (
	"context"
	"fmt"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
)

// CheckedFlow is what came of one transfer or probe of [CheckTransfers].
type CheckedFlow struct {
	runsheet.Flow
	Probe     bool
	Connected bool
	Result    journal.FlowResult
	Log       string // of the driver, its end
}

// CheckTransfers carries every trial of the sheet once on the leading node, one after the
// other, with the drivers, parameters and addresses that [Lead] would use. It repeats
// nothing, waits for nothing between them, and leaves it to the caller to judge: took is
// called with each trial as it ends. The error is the cause of the context where that has
// ended, or says why the radios or the sheet cannot be used.
func CheckTransfers(ctx context.Context, cfg Config, took func(trial *runsheet.Trial, flows []CheckedFlow)) error {
	n, state, err := begin(ctx, cfg)
	if n == nil || err != nil {
		return err
	}
	lctx, end := context.WithCancel(ctx)
	listening, known := keepListeners(lctx, n, state)
	defer listening()
	defer end()
	known()
	e := &emulator{n}
	if err := e.configure(ctx); err != nil {
		return fmt.Errorf("emulated radio: %w", err)
	}
	for i := range n.sheet.Trials {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		flows, err := n.checkTrial(ctx, e, &n.sheet.Trials[i])
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx) // what was cut short says nothing
		}
		took(&n.sheet.Trials[i], flows)
	}
	return nil
}

// checkTrial carries the flows and probes of one trial.
func (n *node) checkTrial(ctx context.Context, e *emulator, trial *runsheet.Trial) (out []CheckedFlow, err error) {
	e.quiet(ctx, true)
	name := fmt.Sprintf("%s/%d/1", n.RunID, trial.Index)
	flows := newFlows(n, trial.Index, 1)
	if err := e.begin(ctx, name, trial, flows, ""); err != nil {
		return nil, err
	}
	runAll(ctx, flows, n.Clock.Now())
	if _, err := e.end(ctx, name); err != nil {
		n.log.Warn("the emulated radio does not report on a transfer of a preflight", "error", err)
	}
	for _, f := range flows {
		out = append(out, CheckedFlow{Flow: f.spec, Probe: f.probe, Connected: f.connected, Result: f.result, Log: tail(f.log, 1024)})
	}
	return out, nil
}
