package document

import (
	"slices"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
)

// fix is the positions that a node's GPS told, summed over attempts.
type fix struct {
	latitude, longitude float64 // degrees; longitude less the first one
	first               float64 // longitude
	attempts            int
}

func (x *fix) add(latitude, longitude float64) {
	if x.attempts == 0 {
		x.first = longitude
	}
	off := longitude - x.first
	switch { // across the date line
	case off > 180:
		off -= 360
	case off < -180:
		off += 360
	}
	x.latitude, x.longitude, x.attempts = x.latitude+latitude, x.longitude+off, x.attempts+1
}

// byGPS is a topology with its stations where their GPS told them to be, as the mean over the
// attempts of its runs, and the lengths of its links by these positions. nil: the radios of a run
// are emulated, and so on one machine; a station moves; or a GPS told nothing.
func byGPS(v *report.Analysis, x *usedTopology) (t *radio.Topology, attempts int) {
	if slices.ContainsFunc(x.of.Stations, func(s radio.Station) bool { return s.Moves != nil }) {
		return nil, 0
	}
	fixes := map[radio.Role]*fix{}
	for _, run := range x.runs {
		r := &v.Dataset.Runs[run]
		if r.Place != journal.PlaceReal && r.Place != journal.PlaceUnnamed {
			return nil, 0
		}
		addFixes(fixes, r)
	}
	out := *x.of
	out.Source, out.Notes = "", nil
	out.Stations, out.Links = slices.Clone(x.of.Stations), slices.Clone(x.of.Links)
	for i := range out.Stations {
		s := &out.Stations[i]
		f := fixes[s.Role]
		if f == nil {
			return nil, 0
		}
		n := float64(f.attempts)
		s.Latitude, s.Longitude, attempts = f.latitude/n, f.first+f.longitude/n, max(attempts, f.attempts)
	}
	for i := range out.Links {
		l := &out.Links[i]
		if a, b := out.Station(l.A), out.Station(l.B); a != nil && b != nil {
			l.DistanceMetres = a.DistanceMetres(b)
		}
	}
	return &out, attempts
}

// addFixes adds what the nodes of a run told.
func addFixes(fixes map[radio.Role]*fix, r *report.Run) {
	for i := range r.Trials {
		for k := range r.Trials[i].Attempts {
			told := r.Trials[i].Attempts[k].Telemetry
			for _, m := range told {
				if m.Metric != runsheet.ReadingLatitude {
					continue
				}
				at := slices.IndexFunc(told, func(o report.Telemetry) bool {
					return o.Metric == runsheet.ReadingLongitude && o.Node == m.Node && o.Source == m.Source
				})
				if at < 0 {
					continue
				}
				role := radio.Role(m.Role)
				if fixes[role] == nil {
					fixes[role] = &fix{}
				}
				fixes[role].add(m.Mean, told[at].Mean)
			}
		}
	}
}
