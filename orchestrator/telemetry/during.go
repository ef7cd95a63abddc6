package telemetry

import (
	"context"
	"math"
	"time"

	"linktrial/internal/telemetrysource"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/telemetry/telemetrydb"
)

// During returns the readings during an attempt as [Fill] does, and where the nodes
// were; start and end are by the clock of the node that leads.
func During(ctx context.Context, conn store.Conn, run string, start, end time.Time) (readings []report.Telemetry, moves []Move, err error) {
	cs, err := readClocks(ctx, conn, run)
	if err != nil || cs == nil {
		return nil, nil, err
	}
	from, to := cs.ofLeader(start), cs.ofLeader(end)
	all, err := cs.series(ctx, conn, from, to)
	if err != nil {
		return nil, nil, err
	}
	for i := range all {
		if t := all[i].during(from, to); t != nil {
			readings = append(readings, *t)
		}
	}
	moves, err = cs.moves(ctx, conn, all, from, to)
	return readings, moves, err
}

// Move is how far a node was at most, during an attempt, from where it was when its
// part in the run began.
type Move struct {
	Node, Role string
	Metres     float64
}

func names(kinds []telemetrysource.Kind) (out []string) {
	for _, k := range kinds {
		out = append(out, string(k))
	}
	return out
}

// moves pairs latitudes and longitudes, which a receiver gives in one reading.
func (cs *clocks) moves(ctx context.Context, conn store.Conn, all []series, from, to time.Time) ([]Move, error) {
	type key struct{ node, source string }
	first := map[key]point{}
	rows, err := telemetrydb.New(conn).FirstPositions(ctx, telemetrydb.FirstPositionsParams{RunID: cs.run, Kinds: names(telemetrysource.Which(telemetrysource.AboutPosition))})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		k := key{r.Node, r.Source}
		p := first[k]
		if r.Name == "latitude" {
			p.latitude = r.Value
		} else {
			p.longitude = r.Value
		}
		first[k] = p
	}
	lines := map[key]*series{}
	var out []Move
	for i := range all {
		f := &all[i]
		if !telemetrysource.Kind(f.kind).Is(telemetrysource.AboutPosition) {
			continue
		}
		k := key{f.node, f.source}
		if f.name == "latitude" {
			lines[k] = f
		}
		lat := lines[k] // comes before the longitude, in the order of names
		if f.name != "longitude" || lat == nil || len(lat.at) != len(f.at) {
			continue
		}
		lo, hi := f.around(from, to)
		for j := lo; j < hi; j++ {
			d := first[k].distance(point{lat.value[j], f.value[j]})
			if n := len(out); n > 0 && out[n-1].Node == f.node {
				out[n-1].Metres = max(out[n-1].Metres, d)
				continue
			}
			out = append(out, Move{f.node, f.role, d})
		}
	}
	return out, nil
}

// around is the readings between two times, from lo on and before hi; where there are
// none, the nearest ones before and after, unless the source failed in between.
func (f *series) around(from, to time.Time) (lo, hi int) {
	for lo < len(f.at) && f.at[lo].Before(from) {
		lo++
	}
	hi = lo
	for hi < len(f.at) && !f.at[hi].After(to) {
		hi++
	}
	if lo < hi {
		return lo, hi
	}
	return f.nearest(lo, hi, from, to)
}

// nearest adds to the readings from lo on and before hi the ones before and after them, where
// they are no further than [around] from the two times, and tell of them: a value ends with a
// failure of its source, and one that was read after a failure begins there.
func (f *series) nearest(lo, hi int, from, to time.Time) (before, after int) {
	before, after = lo, hi
	if lo > 0 && from.Sub(f.at[lo-1]) <= around && !f.brokenIn(f.at[lo-1], from) {
		before--
	}
	if hi < len(f.at) && f.at[hi].Sub(to) <= around {
		since := f.at[hi].Add(-2*around - to.Sub(from))
		if hi > 0 {
			since = f.at[hi-1]
		}
		if !f.brokenIn(since, f.at[hi]) {
			after++
		}
	}
	return before, after
}

// point is a place in degrees.
type point struct{ latitude, longitude float64 }

// earthRadius is the mean one (IUGG), in metres.
const earthRadius = 6371008.8

// distance is along the surface of a sphere, in metres (haversine formula): for the
// kilometres of a field trial it is exact to half a percent.
func (p point) distance(o point) float64 {
	const degree = math.Pi / 180
	lat, lon := (o.latitude-p.latitude)*degree/2, (o.longitude-p.longitude)*degree/2
	h := math.Sin(lat)*math.Sin(lat) + math.Cos(p.latitude*degree)*math.Cos(o.latitude*degree)*math.Sin(lon)*math.Sin(lon)
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}
