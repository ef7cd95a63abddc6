// Package downsample shortens time series for figures and keeps every extreme of
// every column. Comes in: samples one by one, in order of time; it holds no more
// of them in memory than it returns. Goes out: columns of equal length. Pure.
package downsample

import "math"

// Series collects samples. Its zero value is not ready, see [New].
type Series struct {
	from, width float64
	buckets     []bucket // of the time between from and to, in order; empty where every sample is kept
	whole       bool
	at          []float64
	rows        [][]float64 // where every sample is kept
	columns     int
	samples     int64
}

// bucket is an interval of time: the times of its first and last sample, and the
// extremes of each column.
type bucket struct {
	first, last float64
	n           int64
	extremes    []extreme
}

type extreme struct {
	low, high     float64
	lowAt, highAt int64 // which sample of the bucket
	known         bool
}

// New returns a Series for count samples at times from…to that is to have at most
// max points. Up to max samples are all kept. Otherwise the time is divided into
// max/2 equal intervals, and each that has samples becomes two points, at the
// times of its first and last sample, with the lowest and the highest value of
// each column in the order in which they occurred. A counter, which only rises,
// thus keeps its first and last value of each interval.
func New(from, to float64, count int64, max int) *Series {
	s := &Series{from: from, whole: count <= int64(max) || max < 2}
	if s.whole {
		return s
	}
	n := max / 2
	s.buckets = make([]bucket, n)
	if s.width = (to - from) / float64(n); !(s.width > 0) || math.IsInf(s.width, 0) {
		s.width = math.Inf(1) // all in the first
	}
	return s
}

// Add adds a sample. NaN stands for a value that is not known; a sample with
// fewer values than others has NaN in the columns that it does not reach.
func (s *Series) Add(at float64, values []float64) {
	s.samples++
	s.columns = max(s.columns, len(values))
	if s.whole {
		s.at, s.rows = append(s.at, at), append(s.rows, append([]float64(nil), values...))
		return
	}
	k := 0
	if x := (at - s.from) / s.width; x > 0 { // not for NaN either
		k = len(s.buckets) - 1
		if x < float64(len(s.buckets)) {
			k = int(x)
		}
	}
	b := &s.buckets[k]
	if b.n == 0 {
		b.first = at
	}
	b.last = at
	for len(b.extremes) < len(values) {
		b.extremes = append(b.extremes, extreme{})
	}
	for i, x := range values {
		e := &b.extremes[i]
		switch {
		case math.IsNaN(x):
		case !e.known:
			*e = extreme{low: x, high: x, lowAt: b.n, highAt: b.n, known: true}
		case x < e.low:
			e.low, e.lowAt = x, b.n
		// Of equal highest values the last counts: a curve that falls to its lowest
		// value after them fell late.
		case x >= e.high:
			e.high, e.highAt = x, b.n
		}
	}
	b.n++
}

// Samples returns how many samples were added.
func (s *Series) Samples() int64 { return s.samples }

// Reduced reports whether there are fewer points than samples.
func (s *Series) Reduced() bool {
	points := int64(0)
	for i := range s.buckets {
		points += min(s.buckets[i].n, 2)
	}
	return !s.whole && points < s.samples
}

// Columns returns the points: their times, and a list of the same length for each
// column, NaN where a value is not known.
func (s *Series) Columns() (at []float64, columns [][]float64) {
	columns = make([][]float64, s.columns)
	if s.whole {
		for _, row := range s.rows {
			for i := range columns {
				x := math.NaN()
				if i < len(row) {
					x = row[i]
				}
				columns[i] = append(columns[i], x)
			}
		}
		return s.at, columns
	}
	for k := range s.buckets {
		b := &s.buckets[k]
		if b.n == 0 {
			continue
		}
		if at = append(at, b.first); b.n > 1 {
			at = append(at, b.last)
		}
		for i := range columns {
			one, two := math.NaN(), math.NaN()
			if i < len(b.extremes) && b.extremes[i].known {
				e := &b.extremes[i]
				if one, two = e.low, e.high; e.highAt < e.lowAt {
					one, two = two, one
				}
			}
			if columns[i] = append(columns[i], one); b.n > 1 {
				columns[i] = append(columns[i], two)
			}
		}
	}
	return at, columns
}
