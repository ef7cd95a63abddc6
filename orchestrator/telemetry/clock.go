package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/orchestrator/store"
	"linktrial/orchestrator/telemetry/telemetrydb"
)

// clocks are the offsets of a run's nodes from the orchestrator's clock.
type clocks struct {
	run    string
	leader string
	of     map[string]clock
}

// readClocks returns nil for a run without a leading node.
func readClocks(ctx context.Context, conn store.Conn, run string) (*clocks, error) {
	leader, err := telemetrydb.New(conn).RunLeader(ctx, run)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("leader of run %s: %w", run, err)
	}
	rows, err := conn.ClockOffsets(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("clock offsets of run %s: %w", run, err)
	}
	cs := &clocks{run: run, leader: leader, of: map[string]clock{}}
	for node, c := range store.NodeClocks(rows) {
		c.Comparisons(func(at time.Time, by time.Duration) { cs.of[node] = append(cs.of[node], offset{at, by}) })
	}
	return cs, nil
}

// ofLeader converts a time of the leading node's clock to the orchestrator's.
func (cs *clocks) ofLeader(t time.Time) time.Time { return cs.of[cs.leader].toOrchestrator(t) }

// series is the readings of one metric from a source of a node, in order of time.
type series struct {
	node, role, source, kind, name, unit string
	counter                              bool
	at                                   []time.Time // by the orchestrator's clock
	value                                []float64
	failed                               []time.Time // when its source could not be read
}

// brokenIn reports whether the source failed after one time and not after another: a value
// from before does not hold beyond.
func (f *series) brokenIn(after, until time.Time) bool {
	return slices.ContainsFunc(f.failed, func(t time.Time) bool { return t.After(after) && !t.After(until) })
}

// series returns the readings between two times, and those up to [around] before
// and after.
func (cs *clocks) series(ctx context.Context, conn store.Conn, from, to time.Time) ([]series, error) {
	since, until := from, to
	for _, c := range cs.of {
		for _, o := range c {
			since, until = earlier(since, from.Add(-o.by)), later(until, to.Add(-o.by))
		}
	}
	readings, err := telemetrydb.New(conn).TelemetryOf(ctx, telemetrydb.TelemetryOfParams{RunID: cs.run, Since: since.Add(-around), Until: until.Add(around)})
	if err != nil {
		return nil, fmt.Errorf("telemetry of run %s: %w", cs.run, err)
	}
	var out []series
	type source struct{ node, name string }
	failed := map[source][]time.Time{}
	for i := range readings {
		r := &readings[i]
		if r.Value == nil {
			k := source{r.Node, r.Source}
			failed[k] = append(failed[k], cs.of[r.Node].toOrchestrator(r.At))
			continue
		}
		last := len(out) - 1
		if last < 0 || out[last].node != r.Node || out[last].source != r.Source || out[last].name != r.Name {
			out = append(out, series{node: r.Node, role: r.Role, source: r.Source, kind: r.Kind, name: r.Name, unit: r.Unit, counter: r.Counter})
			last++
		}
		out[last].at, out[last].value = append(out[last].at, cs.of[r.Node].toOrchestrator(r.At)), append(out[last].value, *r.Value)
	}
	for i := range out {
		out[i].failed = failed[source{out[i].node, out[i].source}]
	}
	return out, nil
}

// clock is the measured offsets of a node's clock in a run, in order of time.
type clock []offset

// offset is how far the orchestrator's clock was ahead of the node's.
type offset struct {
	at time.Time
	by time.Duration
}

// toOrchestrator converts a time of the node's clock to the orchestrator's. It
// interpolates linearly between two measurements of the offset; without any
// measurement it takes the offset to be 0.
func (c clock) toOrchestrator(t time.Time) time.Time {
	if len(c) == 0 {
		return t
	}
	i := sort.Search(len(c), func(i int) bool { return c[i].at.After(t) })
	switch {
	case i == 0:
		return t.Add(c[0].by)
	case i == len(c):
		return t.Add(c[i-1].by)
	}
	a, b := c[i-1], c[i]
	share := float64(t.Sub(a.at)) / float64(b.at.Sub(a.at))
	return t.Add(a.by + time.Duration(share*float64(b.by-a.by)))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
