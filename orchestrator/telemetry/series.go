// Package telemetry joins what radios told of themselves to the trials during
// which they told it, by one clock for all nodes. Comes in: stored readings and
// clock offsets of a run. Goes out: series beside an attempt. Imports
// orchestrator/store and api/gen.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/store/dbsqlc"
)

// around is how far before and after an attempt the readings may lie that tell
// what held at its start and end: sources that are read between trials have
// none within it.
const around = 5 * time.Minute

// Attempt is one attempt of a run by the clock of the node that leads it.
type Attempt struct {
	Run   string
	Start time.Time
	End   time.Time // zero: it goes on
	// MaxPoints of each series; beyond it every so-manyth reading is left out.
	MaxPoints int
}

// Series is every figure that was read during the attempt, and of each the last
// reading before and the first one after it. Times are seconds since the
// attempt's start; those before it are negative.
func Series(ctx context.Context, q *dbsqlc.Queries, a Attempt) ([]*linktrialv1.TelemetrySeries, error) {
	leader, err := q.RunLeader(ctx, a.Run)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("leader of run %s: %w", a.Run, err)
	}
	rows, err := q.ClockOffsets(ctx, a.Run)
	if err != nil {
		return nil, fmt.Errorf("clock offsets of run %s: %w", a.Run, err)
	}
	clocks := map[string]clock{}
	for _, r := range rows {
		if r.Unknown == "" {
			clocks[r.Node] = append(clocks[r.Node], offset{r.At, time.Duration(r.OffsetNs)})
		}
	}
	end := a.End
	if end.IsZero() {
		end = a.Start.Add(365 * 24 * time.Hour)
	}
	// By the orchestrator's clock, which is that of nobody's readings.
	from, to := clocks[leader].central(a.Start), clocks[leader].central(end)
	since, until := from, to
	for _, c := range clocks {
		for _, o := range c {
			since, until = earlier(since, from.Add(-o.by)), later(until, to.Add(-o.by))
		}
	}
	readings, err := q.TelemetryOf(ctx, dbsqlc.TelemetryOfParams{RunID: a.Run, Since: since.Add(-around), Until: until.Add(around)})
	if err != nil {
		return nil, fmt.Errorf("telemetry of run %s: %w", a.Run, err)
	}
	var out []*linktrialv1.TelemetrySeries
	for i := 0; i < len(readings); {
		first := &readings[i]
		s := &linktrialv1.TelemetrySeries{Node: first.Node, Role: first.Role, Source: first.Source, Name: first.Name, Unit: first.Unit, PerSecond: first.Counter}
		for ; i < len(readings) && readings[i].Node == s.Node && readings[i].Source == s.Source && readings[i].Name == s.Name; i++ {
			at := clocks[s.Node].central(readings[i].At)
			s.At = append(s.At, at.Sub(from).Seconds())
			s.Value = append(s.Value, *readings[i].Value)
		}
		cut(s, to.Sub(from).Seconds())
		if s.PerSecond {
			growth(s)
		}
		thin(s, a.MaxPoints)
		if len(s.At) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// cut leaves what lies within 0 and end, and the readings next to that on either side.
func cut(s *linktrialv1.TelemetrySeries, end float64) {
	first := max(0, sort.Search(len(s.At), func(i int) bool { return s.At[i] > 0 })-1)
	last := min(len(s.At), sort.Search(len(s.At), func(i int) bool { return s.At[i] >= end })+1)
	first = min(first, last)
	s.At, s.Value = s.At[first:last], s.Value[first:last]
	// Of readings that all lie far away nothing is known for the attempt.
	if len(s.At) > 0 && (s.At[len(s.At)-1] < -around.Seconds() || s.At[0] > end+around.Seconds()) {
		s.At, s.Value = nil, nil
	}
}

// growth turns a number that only grows into its growth a second, which holds
// from one reading to the next. A number that became smaller was begun anew,
// and says nothing of the time between: NaN.
func growth(s *linktrialv1.TelemetrySeries) {
	var at, value []float64
	for i := 1; i < len(s.At); i++ {
		rate := math.NaN()
		if dt := s.At[i] - s.At[i-1]; dt > 0 && s.Value[i] >= s.Value[i-1] {
			rate = (s.Value[i] - s.Value[i-1]) / dt
		}
		at, value = append(at, s.At[i-1]), append(value, rate)
	}
	if n := len(at); n > 0 && !math.IsNaN(value[n-1]) {
		at, value = append(at, s.At[n]), append(value, value[n-1])
	}
	s.At, s.Value = at, value
	if s.Unit != "" {
		s.Unit += "/s"
	}
}

func thin(s *linktrialv1.TelemetrySeries, points int) {
	n := len(s.At)
	if points < 2 || n <= points {
		return
	}
	var at, value []float64
	for i := range points - 1 {
		k := i * n / (points - 1)
		at, value = append(at, s.At[k]), append(value, s.Value[k])
	}
	s.At, s.Value = append(at, s.At[n-1]), append(value, s.Value[n-1])
}

// clock is what is known of a node's clock in a run, by ascending time.
type clock []offset

// offset is by how much the orchestrator's clock was ahead of the node's.
type offset struct {
	at time.Time
	by time.Duration
}

// central is a moment of the node's clock by the orchestrator's. Between two
// measurements the offset is taken to have changed evenly; a node whose offset
// nobody measured is taken to be right.
func (c clock) central(t time.Time) time.Time {
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
