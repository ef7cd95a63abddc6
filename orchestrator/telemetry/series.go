// Package telemetry assigns the readings of radios to the trials during which
// they were taken, by one clock for all nodes. Comes in: stored readings and
// clock offsets of a run. Goes out: series beside an attempt, values of each
// attempt for reports, and all readings in one order of time.
package telemetry

import (
	"context"
	"math"
	"sort"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/downsample"
	"linktrial/orchestrator/store"
)

// around is how far before and after an attempt a reading still counts for its
// start or end: sources that are read only between trials have none within it.
const around = 5 * time.Minute

// Attempt is one attempt of a run by the clock of the node that leads it.
type Attempt struct {
	Run   string
	Start time.Time
	End   time.Time // zero: the attempt is under way
	// MaxPoints bounds each series; a longer one is reduced to its extremes.
	MaxPoints int
}

// Series returns every metric that was read during the attempt, with the last
// reading before and the first one after it. Times are seconds since the
// attempt's start; those before it are negative.
func Series(ctx context.Context, conn store.Conn, a Attempt) ([]*linktrialv1.TelemetrySeries, error) {
	cs, err := readClocks(ctx, conn, a.Run)
	if err != nil || cs == nil {
		return nil, err
	}
	end := a.End
	if end.IsZero() {
		end = a.Start.Add(365 * 24 * time.Hour)
	}
	from, to := cs.ofLeader(a.Start), cs.ofLeader(end)
	all, err := cs.series(ctx, conn, from, to)
	if err != nil {
		return nil, err
	}
	var out []*linktrialv1.TelemetrySeries
	for i := range all {
		f := &all[i]
		s := &linktrialv1.TelemetrySeries{Node: f.node, Role: f.role, Source: f.source, Name: f.name, Unit: f.unit, PerSecond: f.counter}
		f.points(func(at time.Time, value float64) {
			s.At, s.Value = append(s.At, at.Sub(from).Seconds()), append(s.Value, value)
		})
		cut(s, to.Sub(from).Seconds())
		if s.PerSecond {
			toRate(s)
		}
		shorten(s, a.MaxPoints)
		if len(s.At) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// points calls each with the readings in order of time, and with NaN where the source failed:
// no value holds there.
func (f *series) points(each func(time.Time, float64)) {
	k := 0
	for i, at := range f.at {
		for ; k < len(f.failed) && !f.failed[k].After(at); k++ {
			each(f.failed[k], math.NaN())
		}
		each(at, f.value[i])
	}
	for ; k < len(f.failed); k++ {
		each(f.failed[k], math.NaN())
	}
}

// cut keeps the readings between 0 and end, and the nearest one on either side.
func cut(s *linktrialv1.TelemetrySeries, end float64) {
	first := max(0, sort.Search(len(s.At), func(i int) bool { return s.At[i] > 0 })-1)
	last := min(len(s.At), sort.Search(len(s.At), func(i int) bool { return s.At[i] >= end })+1)
	first = min(first, last)
	s.At, s.Value = s.At[first:last], s.Value[first:last]
	// Readings that are all far away tell nothing about the attempt.
	if len(s.At) > 0 && (s.At[len(s.At)-1] < -around.Seconds() || s.At[0] > end+around.Seconds()) {
		s.At, s.Value = nil, nil
	}
}

// toRate turns a counter into its rate a second, from one reading to the next. A
// counter that became smaller was reset, and the rate meanwhile is NaN.
func toRate(s *linktrialv1.TelemetrySeries) {
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

func shorten(s *linktrialv1.TelemetrySeries, points int) {
	n := len(s.At)
	if n == 0 {
		return
	}
	t := downsample.New(s.At[0], s.At[n-1], int64(n), points)
	for i := range s.At {
		t.Add(s.At[i], s.Value[i:i+1])
	}
	at, columns := t.Columns()
	s.At, s.Value = at, columns[0]
}
