package agent

import (
	"context"
	"time"

	"linktrial/agents/telemetry"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/service"
)

// boundaryLimit is how long the readings between two trials may delay the next.
const boundaryLimit = time.Second

// watcher reads the radio during one run and writes the readings into the run's
// journal: all sources before the first trial and after the last, those that are
// due at the boundaries that this node knows of, and all the time those whose
// path is no part of the radio network.
type watcher struct {
	p    *telemetry.Poller
	j    *journal.File
	r    *run
	idle chan struct{} // the last transfer under way on this node has ended

	endReading func() // nil: not begun
}

func (r *run) newWatcher(p *radio.Profile, v *runsheet.Valid, j *journal.File) *watcher {
	w := &watcher{p: r.node.cfg.poller(p, v, r.telemetryAddresses(p)), j: j, r: r, idle: make(chan struct{}, 1)}
	r.node.radio.setRun(w.p)
	return w
}

// telemetryAddresses are those that this node may ask: of the signed sheet, where there is
// no assignment.
func (r *run) telemetryAddresses(p *radio.Profile) []string {
	if r.assignment != nil {
		return r.assignment.TelemetryAddresses
	}
	return p.TelemetryAddresses(r.node.cfg.emulated(), r.node.cfg.Role)
}

// begin reads everything and goes on reading what may be read at any time.
func (w *watcher) begin(ctx context.Context) {
	w.record(w.p.Poll(ctx, telemetry.Any))
	always := func(ctx context.Context) { w.p.Run(ctx, telemetry.Always, w.record) }
	w.endReading = service.Go(ctx, always, func(ctx context.Context) {
		for {
			select {
			case <-w.idle:
				w.between(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// between reads what is due at a trial boundary.
func (w *watcher) between(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, boundaryLimit)
	defer cancel()
	w.record(w.p.Poll(ctx, telemetry.Any))
}

// transfers takes note how many transfers are under way on a serving node: when
// the last has ended, a trial boundary begins.
func (w *watcher) transfers(n int) {
	if n == 0 {
		select {
		case w.idle <- struct{}{}:
		default:
		}
	}
}

// stop ends what begin started and waits for it. Nothing is written after.
func (w *watcher) stop() {
	if w.endReading != nil {
		w.endReading()
	}
	w.r.node.radio.setRun(nil)
}

// end reads everything that is due a last time.
func (w *watcher) end(ctx context.Context) {
	w.stop()
	w.between(ctx)
}

func (w *watcher) record(readings []journal.Telemetry) {
	for _, n := range readings {
		typ := journal.TypeTelemetry
		if n.Error != "" {
			typ = journal.TypeTelemetryFailed
		}
		if _, err := w.j.Append(typ, n); err != nil {
			// The executor meets the same fault, and acts on it.
			w.r.log.Debug("telemetry was not taken by the journal", "source", n.Source, "error", err)
			return
		}
	}
}
