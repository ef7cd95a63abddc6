package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report/wording"
)

// Difference is one treatment under the same conditions in two campaigns: radio, topology,
// size and all settings of sweeps are the same. The trials of two campaigns are
// independent samples.
type Difference struct {
	Where     string `json:"where"` // the conditions, for people
	Treatment string `json:"treatment"`
	Label     string `json:"label"`
	Reference string `json:"reference"` // campaign that the other is held against
	Campaign  string `json:"campaign"`
	// ReferenceRun and Run are the first of each campaign with these conditions.
	ReferenceRun string `json:"reference_run"`
	Run          string `json:"run"`

	ReferenceValid int `json:"reference_valid"` // trials
	Valid          int `json:"valid"`
	// ReferenceFailed and Failed are trials, too; they are in no average.
	ReferenceFailed int      `json:"reference_failed"`
	Failed          int      `json:"failed"`
	ReferenceKBps   *float64 `json:"reference_average_kb_per_s"`
	AverageKBps     *float64 `json:"average_kb_per_s"`

	DifferenceKBps *float64 `json:"difference_kb_per_s"`
	CI             *Range   `json:"difference_ci95_kb_per_s"` // Welch
	// ChangePercent is the difference in percent of the reference's average.
	ChangePercent *float64 `json:"change_percent"`
	// ChangeCI is of ChangePercent, by Fieller's interval of the ratio: both averages vary in it.
	ChangeCI *Range   `json:"change_ci95_percent"`
	P        *float64 `json:"welch_p"`      // of the test that CI inverts
	PHolm    *float64 `json:"welch_p_holm"` // corrected for all lines
	// Changed is what else differs between the two, for people: options, versions,
	// where it ran.
	Changed string `json:"changed,omitempty"`
	// Partial: not all trials of the two have ended.
	Partial bool `json:"partial,omitempty"`
	// ReferenceImported and Imported are where the campaigns' results come from, if other
	// orchestrators measured them.
	ReferenceImported *Import `json:"reference_imported,omitempty"`
	Imported          *Import `json:"imported,omitempty"`
}

// Decided reports whether the trials decide that there is a difference.
func (d *Difference) Decided() bool { return d.PHolm != nil && *d.PHolm < 1-level }

// Differences holds campaigns against the first one.
type Differences struct {
	Campaigns []string // in their order
	Lines     []Difference
	// Alone is how many treatments, counted under each of their conditions, only one of
	// the campaigns has.
	Alone int
	// Lacking are those of them that the first campaign has.
	Lacking []Lacking
}

// Lacking is a treatment under its conditions that the first campaign has and another one
// lacks.
type Lacking struct {
	Where    string // the conditions, for people
	Label    string
	Campaign string // that lacks it
}

// part is one treatment under one set of conditions in one campaign.
type part struct {
	campaign, where string
	run             string
	treatment       runsheet.Treatment
	place           string
	rates           []float64 // KB/s
	failed          int
	partial         bool
	imported        *Import
}

// HoldCampaigns holds the campaigns of these analyses, or of one of merged ones
// ([Merge]), against the first.
func HoldCampaigns(all ...*Analysis) *Differences {
	d := &Differences{}
	for _, v := range all {
		for i := range v.runs {
			if c := v.campaignOf(&v.runs[i]); !slices.Contains(d.Campaigns, c) {
				d.Campaigns = append(d.Campaigns, c)
			}
		}
	}
	if len(d.Campaigns) < 2 { // as most often: nothing to gather
		return d
	}
	type key struct{ where, treatment string }
	parts, seen, order := map[string]map[key]*part{}, map[key]bool{}, []key{}
	for _, v := range all {
		for i := range v.runs {
			for _, p := range partsOf(v, &v.runs[i]) {
				if parts[p.campaign] == nil {
					parts[p.campaign] = map[key]*part{}
				}
				at := key{p.where, p.treatment.Name}
				if !seen[at] {
					seen[at], order = true, append(order, at)
				}
				if known := parts[p.campaign][at]; known != nil {
					known.rates, known.failed, known.partial = append(known.rates, p.rates...), known.failed+p.failed, known.partial || p.partial
					continue
				}
				parts[p.campaign][at] = &p
			}
		}
	}
	for _, at := range order {
		reference := parts[d.Campaigns[0]][at]
		for _, campaign := range d.Campaigns[1:] {
			switch other := parts[campaign][at]; {
			case reference != nil && other != nil:
				d.Lines = append(d.Lines, differ(reference, other))
			case reference != nil:
				d.Alone++
				d.Lacking = append(d.Lacking, Lacking{at.where, reference.label(), campaign})
			case other != nil:
				d.Alone++
			}
		}
	}
	d.correct()
	d.Lines = without(d.Lines, func(l *Difference) bool {
		return slices.ContainsFunc(all, func(v *Analysis) bool { return v.leavesOut(l.Treatment) })
	})
	return d
}

// campaignOf is the campaign of a run, also of one that was merged with others'.
func (v *Analysis) campaignOf(s *summarised) string {
	return cmp.Or(ValueOf(s.axes, CampaignAxis), v.Dataset.Campaign)
}

// partsOf are the rows of a run that were not missing.
func partsOf(v *Analysis, s *summarised) (out []part) {
	if s.run.Sheet == nil {
		return nil
	}
	t := &s.table
	where := []string{t.RadioTitle + " at " + t.TopologyTitle, unit.FormatPayload(t.SizeBytes)}
	if t.Group != "" {
		where = append(where, t.Group)
	}
	for _, c := range s.axes[3:] { // radio, topology and size are named above
		if c.Axis != CampaignAxis {
			where = append(where, c.Axis+" "+c.Value)
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Missing != "" {
			continue
		}
		p := part{campaign: v.campaignOf(s), run: s.run.ID, where: strings.Join(where, " · "), place: t.Place, rates: s.samples[i].values(rateOf), failed: r.Failed, partial: r.NotEnded > 0, imported: t.Imported,
			treatment: runsheet.Treatment{Name: r.Treatment, Label: r.Label, Protocol: r.Protocol}}
		if known := s.run.Sheet.Treatment(r.Treatment); known != nil { // not of a mix
			p.treatment = *known
		}
		out = append(out, p)
	}
	return out
}

func differ(a, b *part) Difference {
	w := stats.Welch(a.rates, b.rates, level)
	d := Difference{Where: a.where, Treatment: a.treatment.Name, Label: a.label(), Reference: a.campaign, Campaign: b.campaign, ReferenceRun: a.run, Run: b.run,
		ReferenceValid: len(a.rates), Valid: len(b.rates), ReferenceFailed: a.failed, Failed: b.failed, ReferenceKBps: Rounded(stats.Mean(a.rates)), AverageKBps: Rounded(stats.Mean(b.rates)),
		DifferenceKBps: Rounded(w.Difference), CI: interval(w.Interval), P: Rounded(w.P), Changed: changed(a, b), Partial: a.partial || b.partial,
		ReferenceImported: a.imported, Imported: b.imported}
	if m := stats.Mean(a.rates); m > 0 {
		d.ChangePercent = Rounded(100 * w.Difference / m)
	}
	if of := stats.WelchRatio(a.rates, b.rates, level).Interval; of.Defined() {
		d.ChangeCI = interval(stats.Interval{Low: 100 * (max(0, of.Low) - 1), High: 100 * (of.High - 1)})
	}
	return d
}

func (p *part) label() string { return cmp.Or(p.treatment.Label, p.treatment.Name) }

// changed names what differs between a treatment of two campaigns beside the campaign.
func changed(a, b *part) string {
	var out []string
	add := func(what, from, to string) {
		if from != to {
			out = append(out, fmt.Sprintf("%s: %s → %s", what, from, to))
		}
	}
	add("protocol", a.treatment.Protocol, b.treatment.Protocol)
	if a.treatment.Protocol == b.treatment.Protocol {
		add("version of "+a.treatment.Protocol, a.treatment.DriverVersion, b.treatment.DriverVersion)
		options := map[string]bool{}
		for _, t := range []runsheet.Treatment{a.treatment, b.treatment} {
			for name := range t.Options {
				options[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(options)) {
			from, to := a.treatment.Options[name], b.treatment.Options[name]
			if !reflect.DeepEqual(from, to) {
				add(name, option(from), option(to))
			}
		}
	}
	add("relay processes", cmp.Or(passes(&a.treatment), "none"), cmp.Or(passes(&b.treatment), "none"))
	add("where", a.place, b.place)
	return wording.Clean(strings.Join(out, "; "))
}

func option(x any) string {
	if x == nil {
		return "not set"
	}
	return fmt.Sprint(x)
}

// correct fills PHolm: every line is one comparison.
func (d *Differences) correct() {
	var ps []float64
	for i := range d.Lines {
		p := math.NaN()
		if x := d.Lines[i].P; x != nil {
			p = *x
		}
		ps = append(ps, p)
	}
	for i, p := range stats.Holm(ps) {
		d.Lines[i].PHolm = Rounded(p)
	}
}

// DifferencesMethod says how campaigns are compared.
const DifferencesMethod = "n: valid trials of the two campaigns. Difference: of the averages, with Welch's 95 % interval; p is of Welch's test, which that interval inverts, " +
	"Holm-corrected for all lines; * is p < 0.05. The trials of two campaigns count as independent of each other."

// AloneText says what has nothing to be held against; empty: nothing.
func (d *Differences) AloneText() string {
	if d.Alone == 0 {
		return ""
	}
	return fmt.Sprintf("Without a counterpart in the other campaign: %s, each under its conditions.", wording.Plural(d.Alone, "treatment", "treatments"))
}

// DifferenceHeader names the columns of [Difference.Cells].
func DifferenceHeader() []string {
	return []string{"n", "reference", "campaign", "difference", "95 % CI", "change", "p"}
}

// Cells are its values.
func (d *Difference) Cells(rate wording.RateUnit) []string {
	star, sign := "", ""
	if d.Decided() {
		star = "*"
	}
	if d.DifferenceKBps != nil && *d.DifferenceKBps > 0 {
		sign = "+"
	}
	return []string{fmt.Sprintf("%d, %d", d.ReferenceValid, d.Valid), rate.Write(d.ReferenceKBps), rate.Write(d.AverageKBps),
		sign + rate.Write(d.DifferenceKBps), d.CI.Text(rate.Write), wording.Deviation(d.ChangePercent), wording.PValue(d.PHolm) + star}
}

// Against names the two campaigns of a line, and which of them was imported.
func (d *Difference) Against() string {
	name := func(campaign string, x *Import) string {
		if x == nil {
			return campaign
		}
		return campaign + " (imported)"
	}
	return name(d.Campaign, d.Imported) + " against " + name(d.Reference, d.ReferenceImported)
}

// Remarks are what a reader must know of a line beside its values; empty: nothing.
func (d *Difference) Remarks() string {
	var out []string
	if d.Changed != "" {
		out = append(out, d.Changed)
	}
	if d.Partial {
		out = append(out, "partial: trials have not ended")
	}
	return strings.Join(out, "; ")
}

// Sections are the lines of the same conditions and campaign, in the order of their first.
func (d *Differences) Sections() (out [][]Difference) {
	same := func(a, b *Difference) bool { return a.Where == b.Where && a.Campaign == b.Campaign }
	for i := range d.Lines {
		l := &d.Lines[i]
		if k := slices.IndexFunc(out, func(s []Difference) bool { return same(&s[0], l) }); k >= 0 {
			out[k] = append(out[k], *l)
			continue
		}
		out = append(out, []Difference{*l})
	}
	return out
}
