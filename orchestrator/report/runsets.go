package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/orchestrator/report/wording"
)

// runKind is what runs of one set have in common.
type runKind struct {
	group, settings, place string
	sizeBytes              int64
	horizon                time.Duration
}

// runSet is the runs of one kind, and how many are not among them, by why.
type runSet struct {
	runs                   []*summarised
	open, ruled, repeating int
}

// runSets are the runs by kind, in their order. Ratios of runs that a rule stopped are biased.
// Runs on emulated radios with the same channel realisations are one place and day: the first
// that has ended counts.
func runSets(all []*Analysis) (out []*runSet) {
	type channel struct {
		kind            runKind
		radio, topology string
		seed            uint64
	}
	seen, realised, by := map[string]bool{}, map[channel]bool{}, map[runKind]*runSet{}
	for _, v := range all {
		for i := range v.runs {
			s := &v.runs[i]
			if s.run.Sheet == nil || seen[s.run.ID] {
				continue
			}
			seen[s.run.ID] = true
			k := kindOf(s.run)
			set := by[k]
			if set == nil {
				set = &runSet{}
				by[k], out = set, append(out, set)
			}
			sheet := s.run.Sheet
			at := channel{kind: k, radio: sheet.Cell.Radio, topology: sheet.Cell.Topology}
			if len(sheet.Trials) > 0 {
				at.seed = sheet.Trials[0].ChannelSeed
			}
			switch emulated := s.run.Place == journal.PlaceVirtual || s.run.Place == journal.PlaceEmulated; {
			case s.table.Stopping != nil:
				set.ruled++
			case s.run.underWay():
				set.open++
			case len(ranked(&s.table, s.run.isMix)) == 0 && len(soonest(&s.table, s.run.isMix)) == 0:
			case emulated && realised[at]:
				set.repeating++
			default:
				realised[at] = true
				set.runs = append(set.runs, s)
			}
		}
	}
	return out
}

func kindOf(r *Run) runKind {
	c := &r.Sheet.Cell
	k := runKind{group: c.Group, place: r.Place, sizeBytes: c.SizeBytes, horizon: r.Sheet.Limits.DeliveryHorizon()}
	var settings []string
	for _, s := range c.Settings {
		if text := s.Axis + " " + s.Label; s.Axis != CampaignAxis && !slices.Contains(settings, text) {
			settings = append(settings, text)
		}
	}
	k.settings = strings.Join(settings, ", ")
	return k
}

// heldRuns is the values of the treatments that all runs of a set have.
type heldRuns struct {
	names, labels []string
	values        [][]map[int]float64 // by treatment, run and iteration
	means         []float64           // by treatment: over runs, of the mean logarithm
	differ        []string            // labels of treatments whose settings differ between runs
}

// shared takes the treatments, in the order of the first run, that have values in all runs and
// are the same treatment there.
func (set *runSet) shared(values func(*sample) map[int]float64) *heldRuns {
	h, first := &heldRuns{}, set.runs[0]
treatments:
	for i := range first.table.Rows {
		row := &first.table.Rows[i]
		name := row.Treatment
		var of []map[int]float64
		mean := 0.0
		for _, s := range set.runs {
			k := s.row(name)
			if k < 0 || s.run.isMix(name) {
				continue treatments
			}
			xs := values(&s.samples[k])
			if len(xs) == 0 {
				continue treatments
			}
			of, mean = append(of, xs), mean+stats.Mean(logsOf(xs))/float64(len(set.runs))
		}
		settings := treatmentSettings(first.run.Sheet, name)
		if slices.ContainsFunc(set.runs[1:], func(s *summarised) bool { return treatmentSettings(s.run.Sheet, name) != settings }) {
			h.differ = append(h.differ, wording.Clean(row.Label))
			continue
		}
		h.names, h.labels = append(h.names, name), append(h.labels, wording.Clean(row.Label))
		h.values, h.means = append(h.values, of), append(h.means, mean)
	}
	return h
}

// logsOf are natural logarithms of values by iteration, in its order.
func logsOf(values map[int]float64) (logs []float64) {
	for _, iteration := range slices.Sorted(maps.Keys(values)) {
		logs = append(logs, math.Log(values[iteration]))
	}
	return logs
}

// treatmentSettings is what a treatment does in a run, beside the version of its driver: as
// JSON, in which numbers of imported sheets are those of others.
func treatmentSettings(s *runsheet.Sheet, name string) string {
	var carried []runsheet.Flow
	if i := slices.IndexFunc(s.Trials, func(t runsheet.Trial) bool { return t.Treatment == name }); i >= 0 {
		for _, f := range s.Trials[i].Carried() {
			if f.PayloadSeed = 0; f.Session > 0 { // on-times are drawn
				f = runsheet.Flow{Treatment: f.Treatment, From: f.From, To: f.To, Session: f.Session}
				if slices.Contains(carried, f) {
					continue
				}
			}
			carried = append(carried, f)
		}
	}
	t := runsheet.Treatment{}
	if known := s.Treatment(name); known != nil {
		t = *known
	}
	t.Label, t.DriverVersion, t.Digests, t.Port, t.Missing = "", "", nil, 0, ""
	t.Via = slices.Clone(t.Via)
	for i := range t.Via {
		t.Via[i].DriverVersion, t.Via[i].Digests, t.Via[i].Port = "", nil, 0
	}
	b, err := json.Marshal([]any{t, carried})
	if err != nil {
		return err.Error() // options are values of JSON
	}
	return string(b)
}

// where is what the runs have in common, for people.
func (set *runSet) where() string {
	r := set.runs[0].run
	k := kindOf(r)
	parts := []string{k.group, r.Sheet.Cell.At("size"), k.settings, k.place}
	if k.sizeBytes == 0 {
		parts[1] = ""
	}
	return wording.Clean(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", "))
}

// leftOut says which runs of the kind and which treatments are not in the comparison.
func (set *runSet) leftOut(differ []string) (text string) {
	if set.ruled > 0 {
		text += fmt.Sprintf(" Left out: %s with a rule to stop by, whose ratios are biased.", wording.Plural(set.ruled, "run", "runs"))
	}
	if set.repeating > 0 {
		text += fmt.Sprintf(" Left out: %s with the channel realisations of another one.", wording.Plural(set.repeating, "run", "runs"))
	}
	if len(differ) > 0 {
		text += fmt.Sprintf(" Left out, as options or flows differ between runs: %s.", strings.Join(differ, ", "))
	}
	return text
}
