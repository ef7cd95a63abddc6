package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report/wording"
	"linktrial/orchestrator/stats"
	"linktrial/protocols/contract"
)

// Probe is one probe of an attempt.
type Probe struct {
	Treatment string          `json:"treatment"`
	From      radio.Role      `json:"from"`
	To        radio.Role      `json:"to"`
	Verdict   journal.Verdict `json:"verdict,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Message   string          `json:"message,omitempty"`
	Connect   time.Duration   `json:"connect_ns"`
	Elapsed   time.Duration   `json:"elapsed_ns"`
	// Figures are as measured: delays are between the clocks as they were. Nil where
	// there are none.
	Figures *contract.ProbeFigures `json:"figures,omitempty"`
}

// Counts reports whether the probe's figures count: whatever became of the
// transfers beside it.
func (p *Probe) Counts() bool { return p.Verdict == journal.Succeeded && p.Figures != nil }

// Unloads reports whether probes that are named as beside a treatment's transfers ran beside
// nothing: the attempt ended, and no transfer of it ever connected.
func (a *Attempt) Unloads(beside string) bool {
	if beside == "" || a.Verdict == "" || a.Valid() || a.Connect > 0 {
		return false
	}
	return !slices.ContainsFunc(a.Flows, func(f Flow) bool { return f.Connect > 0 })
}

// UnloadedNote is what every output says of such a probe.
const UnloadedNote = "no transfer beside it connected"

// Name is what the row is called: the probe, and what ran beside it.
func (r *ProbeRow) Name() string {
	if r.Beside == "" {
		return wording.Clean(r.Label) + ", alone"
	}
	return wording.Clean(r.Label) + " beside " + wording.Clean(r.BesideLabel)
}

// Caveats are what the row's figures leave out, and of what else the reader must know: every
// output that shows one of them shows these too.
func (r *ProbeRow) Caveats() (out []string) {
	for _, f := range r.Failures {
		out = append(out, fmt.Sprintf("%d without figures: %s", f.Attempts, wording.Clean(strings.TrimSpace(string(f.Verdict)+" "+f.Reason))))
	}
	if r.Unloaded > 0 {
		out = append(out, fmt.Sprintf("%d of %d left out, because %s", r.Unloaded, r.Measured+r.Unloaded, UnloadedNote))
	}
	if r.FailedTransfers > 0 {
		out = append(out, fmt.Sprintf("%d of the %d measured ran beside a transfer that gave no valid figure", r.FailedTransfers, r.Measured))
	}
	if r.Unsent > 0 {
		out = append(out, fmt.Sprintf("its congestion control did not let %d of the %d packets offered go; they are no losses", r.Unsent, r.Offered))
	}
	return out
}

// ProbeCaveats are the caveats of all probes of a table, each with the row's name.
func (t *RunTable) ProbeCaveats() (out []string) {
	for i := range t.Probes {
		for _, c := range t.Probes[i].Caveats() {
			out = append(out, t.Probes[i].Name()+": "+c)
		}
	}
	return out
}

// ProbeClock is how the clocks of the two ends of a run's probes stand to each other.
type ProbeClock struct {
	// Shared: both ends are on one machine and have one clock.
	Shared bool `json:"shared"`
	// Offset is to be added to every delay from client to server, and taken from those
	// back; Uncertainty bounds its error.
	Offset      time.Duration `json:"offset_ns"`
	Uncertainty time.Duration `json:"uncertainty_ns"`
	// Unknown is why nothing is known of it; delays are then only those above the
	// shortest one of their probe.
	Unknown string `json:"unknown,omitempty"`
}

// OneClock is that of nodes of one machine.
var OneClock = ProbeClock{Shared: true}

// CompareClocks makes the clocks of two nodes one, each of which was compared with
// the orchestrator's before and after the run.
func CompareClocks(client, server []journal.ClockOffset) ProbeClock {
	c, cErr, why := clockOf(client)
	if why != "" {
		return ProbeClock{Unknown: "the client's clock was not compared: " + why}
	}
	s, sErr, why := clockOf(server)
	if why != "" {
		return ProbeClock{Unknown: "the server's clock was not compared: " + why}
	}
	// A delay is the server's time of arrival less the client's of sending; on the
	// orchestrator's clock each has its node's offset added.
	return ProbeClock{Offset: s - c, Uncertainty: cErr + sErr}
}

// Of is the clock of the probes that come from a role: the other way round, the
// offset has the other sign.
func (c ProbeClock) Of(from radio.Role) ProbeClock {
	if from == radio.RoleServer {
		c.Offset = -c.Offset
	}
	return c
}

// clockOf is a node's offset halfway between its comparisons, with what bounds its
// error: that of the comparisons, and what the clock moved between them.
func clockOf(all []journal.ClockOffset) (offset, bound time.Duration, why string) {
	low, high := time.Duration(math.MaxInt64), time.Duration(math.MinInt64)
	why = "no comparison has arrived"
	for _, o := range all {
		if o.Unknown != "" {
			why = o.Unknown
			continue
		}
		low, high = min(low, o.Offset-o.Error), max(high, o.Offset+o.Error)
	}
	if low > high {
		return 0, 0, why
	}
	return (low + high) / 2, (high - low + 1) / 2, ""
}

// ProbeRow is one probe in one run: beside the transfers of one treatment, or
// alone. Delays and jitter are in milliseconds, corrected by the clocks' offset;
// where the clocks are not known, delays are those above the shortest of each probe.
type ProbeRow struct {
	Probe string     `json:"probe"` // the treatment that it is of
	From  radio.Role `json:"from"`
	To    radio.Role `json:"to"`
	Label string     `json:"label"` // with the direction, where the run has probes from the server
	DSCP  int        `json:"dscp,omitempty"`
	// Beside is the treatment or mix whose transfers ran meanwhile; empty: none did.
	Beside      string `json:"beside,omitempty"`
	BesideLabel string `json:"beside_label,omitempty"`

	Trials   int       `json:"trials"`   // of the sheet
	Measured int       `json:"measured"` // whose last attempt has the probe's figures
	Failures []Failure `json:"failures,omitempty"`
	// FailedTransfers is how many of the measured ran beside a transfer without a valid figure.
	FailedTransfers int `json:"failed_transfers,omitempty"`
	// Unloaded is how many others had figures, but no transfer beside them, because it never
	// connected: they are in none of the row's figures.
	Unloaded int `json:"unloaded,omitempty"`

	// Offered is what the pattern offered: Sent, and Unsent, which the congestion
	// control of the probe's protocol did not let go.
	Offered          int64    `json:"offered_packets"`
	Unsent           int64    `json:"unsent_packets"`
	Sent             int64    `json:"sent_packets"`
	Received         int64    `json:"received_packets"`
	Lost             int64    `json:"lost_packets"`
	LossShare        *float64 `json:"loss_share"`
	LossBursts       int64    `json:"loss_bursts"`
	LongestLossBurst int64    `json:"longest_loss_burst"`
	Reordered        int64    `json:"reordered_packets"`
	Duplicated       int64    `json:"duplicated_packets"`

	// The least and the longest of all packets; the others are means over the trials.
	DelayMinMS  *float64 `json:"delay_min_ms"`
	DelayMeanMS *float64 `json:"delay_mean_ms"`
	DelayMeanCI *Range   `json:"delay_mean_ci95_ms"`
	DelayP50MS  *float64 `json:"delay_p50_ms"`
	DelayP95MS  *float64 `json:"delay_p95_ms"`
	DelayP99MS  *float64 `json:"delay_p99_ms"`
	DelayMaxMS  *float64 `json:"delay_max_ms"`
	JitterMS    *float64 `json:"jitter_ms"`
	JitterMaxMS *float64 `json:"jitter_max_ms"`
	// UncertaintyMS is that of every delay; nil: the clocks were not compared.
	UncertaintyMS *float64 `json:"uncertainty_ms"`
	// ProcessTimes: packets arrived when the driver got them, so that delays contain
	// what it waited for a processor, which nothing bounds.
	ProcessTimes bool `json:"process_times,omitempty"`
	// PercentilesMS are the 101 percentiles from 0 to 100 of the delays of all packets
	// that arrived in the measured trials; absent where a driver reports none.
	PercentilesMS []float64 `json:"delay_percentiles_ms,omitempty"`
}

// probeSample is what a row of probes is made of.
type probeSample struct {
	row                      ProbeRow
	mean, p50, p95, p99, jit []float64
	least, longest, jitterTo float64
	uncertain                float64
	failures                 map[Failure]int
	all                      []weighted
	partial                  bool // a measured trial has no percentiles
}

// weighted is a delay in milliseconds, of so many packets.
type weighted struct{ ms, packets float64 }

// probeRows are the rows of a run: of each probe first that without transfers, then
// one for each treatment beside which it ran, in the order of the sheet.
func probeRows(r *Run) []ProbeRow {
	if r.Sheet == nil {
		return nil
	}
	type key struct {
		probe  string
		from   radio.Role
		beside string
	}
	var order []key
	samples := map[key]*probeSample{}
	for i := range r.Sheet.Trials {
		spec := &r.Sheet.Trials[i]
		for k := range spec.Probes {
			id := key{spec.Probes[k].Treatment, spec.Probes[k].From, spec.Beside()}
			s := samples[id]
			if s == nil {
				s = newProbeSample(r, &spec.Probes[k], id.beside)
				samples[id], order = s, append(order, id)
			}
			s.row.Trials++
			if t := r.trial(i); t != nil {
				s.add(r, t, k)
			}
		}
	}
	at := map[string]int{}
	for i, t := range r.Sheet.Treatments {
		at[t.Name] = i + 1
	}
	for i, m := range r.Sheet.Mixes {
		at[m.Name] = len(r.Sheet.Treatments) + i + 1
	}
	slices.SortStableFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(at[a.probe], at[b.probe]), cmp.Compare(runsheet.Place(a.from), runsheet.Place(b.from)), cmp.Compare(at[a.beside], at[b.beside]))
	})
	var out []ProbeRow
	for _, id := range order {
		out = append(out, samples[id].finish(r.ProbeClock))
	}
	return out
}

func newProbeSample(r *Run, f *runsheet.Flow, beside string) *probeSample {
	s := &probeSample{row: ProbeRow{Probe: f.Treatment, From: f.From, To: f.To, Label: r.probeLabel(f), Beside: beside}, least: math.NaN(), longest: math.NaN(), jitterTo: math.NaN(), failures: map[Failure]int{}}
	if beside != "" {
		s.row.BesideLabel = r.Sheet.Label(beside)
	}
	if t := r.Sheet.Treatment(f.Treatment); t != nil {
		s.row.DSCP = t.DSCP
	}
	return s
}

// probeLabel is a probe's name for people.
func (r *Run) probeLabel(f *runsheet.Flow) string {
	label := r.Sheet.Label(f.Treatment)
	if slices.ContainsFunc(r.Sheet.Trials, func(t runsheet.Trial) bool {
		return slices.ContainsFunc(t.Probes, func(p runsheet.Flow) bool { return p.FromServer() })
	}) {
		label += fmt.Sprintf(", %s → %s", f.From, f.To)
	}
	return label
}

// add takes the last attempt of a trial, whose kth probe it is.
func (s *probeSample) add(r *Run, t *Trial, k int) {
	if len(t.Attempts) == 0 {
		return
	}
	a := &t.Attempts[len(t.Attempts)-1]
	if k >= len(a.Probes) || a.Verdict == "" {
		return
	}
	p := &a.Probes[k]
	if !p.Counts() {
		s.failures[Failure{Verdict: p.Verdict, Reason: p.Reason}]++
		return
	}
	if a.Unloads(s.row.Beside) {
		s.row.Unloaded++
		return
	}
	f := p.Figures
	s.row.Measured++
	if s.row.Beside != "" && !a.Valid() && !r.Waits(a) {
		s.row.FailedTransfers++
	}
	s.row.Sent, s.row.Received, s.row.Lost = s.row.Sent+f.Sent, s.row.Received+f.Received, s.row.Lost+f.Lost
	s.row.Unsent, s.row.Offered = s.row.Unsent+f.Unsent, s.row.Offered+f.Sent+f.Unsent
	s.row.ProcessTimes = s.row.ProcessTimes || f.ProcessTimes
	s.row.LossBursts, s.row.LongestLossBurst = s.row.LossBursts+f.LossBursts, max(s.row.LongestLossBurst, f.LongestLossBurst)
	s.row.Reordered, s.row.Duplicated = s.row.Reordered+f.Reordered, s.row.Duplicated+f.Duplicated
	if f.Delay == nil {
		return
	}
	d := r.ProbeClock.Of(s.row.From).Correct(f.Delay)
	s.mean, s.p50, s.p95, s.p99 = append(s.mean, d.Mean), append(s.p50, d.P50), append(s.p95, d.P95), append(s.p99, d.P99)
	s.jit = append(s.jit, milliseconds(f.JitterMeanNS))
	s.least, s.longest = fmin(s.least, d.Min), fmax(s.longest, d.Max)
	s.jitterTo = fmax(s.jitterTo, milliseconds(f.JitterMaxNS))
	s.uncertain = max(s.uncertain, milliseconds(f.ClockStepNS))
	s.partial = s.partial || d.Percentiles == nil
	for i := 1; i < len(d.Percentiles); i++ {
		s.all = append(s.all, weighted{d.Percentiles[i], float64(f.Received) / float64(len(d.Percentiles)-1)})
	}
}

func (s *probeSample) finish(c ProbeClock) ProbeRow {
	row := s.row
	if row.Sent > 0 {
		row.LossShare = Rounded(float64(row.Lost) / float64(row.Sent))
	}
	row.DelayMinMS, row.DelayMaxMS = Rounded(s.least), Rounded(s.longest)
	row.DelayMeanMS, row.DelayMeanCI = Rounded(stats.Mean(s.mean)), meanInterval(s.mean)
	row.DelayP50MS, row.DelayP95MS, row.DelayP99MS = Rounded(stats.Mean(s.p50)), Rounded(stats.Mean(s.p95)), Rounded(stats.Mean(s.p99))
	row.JitterMS, row.JitterMaxMS = Rounded(stats.Mean(s.jit)), Rounded(s.jitterTo)
	if c.Unknown == "" && len(s.mean) > 0 {
		row.UncertaintyMS = Rounded(milliseconds(c.Uncertainty.Nanoseconds()) + s.uncertain)
	}
	if !s.partial {
		row.PercentilesMS = pooled(s.all, s.least)
	}
	for f, n := range s.failures {
		f.Attempts = n
		row.Failures = append(row.Failures, f)
	}
	slices.SortFunc(row.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Reason, b.Reason))
	})
	return row
}

// pooled are the percentiles of several probes' delays together; nil of none.
func pooled(all []weighted, least float64) []float64 {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.ms, b.ms) })
	total := 0.0
	for _, w := range all {
		total += w.packets
	}
	out := []float64{*Rounded(least)}
	sum, i := all[0].packets, 0
	for p := 1; p < contract.DelayPercentiles; p++ {
		// A sum of shares is not exact; a packet more or less is not meant.
		for sum < total*float64(p)/(contract.DelayPercentiles-1)-total*1e-9 && i < len(all)-1 {
			i++
			sum += all[i].packets
		}
		out = append(out, *Rounded(all[i].ms))
	}
	return out
}

// Uncertainty is the largest of the rows' in milliseconds; nil: not known.
func (t *RunTable) Uncertainty() (out *float64) {
	for i := range t.Probes {
		if u := t.Probes[i].UncertaintyMS; u != nil && (out == nil || *u > *out) {
			out = u
		}
	}
	return out
}

// trial is the one with this number in the sheet; nil: the run does not have it, as one
// that was read from an export without some treatments.
func (r *Run) trial(index int) *Trial {
	if index < len(r.Trials) && r.Trials[index].Index == index {
		return &r.Trials[index]
	}
	if i := slices.IndexFunc(r.Trials, func(t Trial) bool { return t.Index == index }); i >= 0 {
		return &r.Trials[i]
	}
	return nil
}

// AttemptProbes are the rows of one attempt's probes.
func (r *Run) AttemptProbes(trial, attempt int) *RunTable {
	out := &RunTable{ProbeClock: &r.ProbeClock}
	if r.Sheet == nil || trial >= len(r.Sheet.Trials) || trial >= len(r.Trials) {
		return out
	}
	spec, t := &r.Sheet.Trials[trial], r.Trials[trial]
	i := slices.IndexFunc(t.Attempts, func(a Attempt) bool { return a.Attempt == attempt })
	if i < 0 {
		return out
	}
	t.Attempts = t.Attempts[i : i+1]
	for k := range spec.Probes {
		s := newProbeSample(r, &spec.Probes[k], spec.Beside())
		s.row.Trials++
		s.add(r, &t, k)
		out.Probes = append(out.Probes, s.finish(r.ProbeClock))
	}
	return out
}

// ProbeCertainty says how certain the delays of a table's probes are; empty where it
// has none.
func (t *RunTable) ProbeCertainty() string {
	if t.ProbeClock == nil || len(t.Probes) == 0 {
		return ""
	}
	said := t.clockCertainty()
	if names := t.processTimed(); len(names) > 0 {
		said = strings.TrimSpace(said + " Packets of " + strings.Join(names, ", ") + " arrived when the driver got them, because the kernel tells no time of their arrival: delays contain what the driver waited for a processor, without a bound.")
	}
	return said
}

func (t *RunTable) clockCertainty() string {
	switch c := t.ProbeClock; {
	case c.Shared:
		return "Both ends have one clock."
	case c.Unknown != "":
		return "Delays are those above the shortest one of each probe: " + c.Unknown + "."
	}
	u := t.Uncertainty()
	if u == nil {
		return ""
	}
	return fmt.Sprintf("The clocks of both ends were compared: every delay is uncertain by %s ms.", wording.Delay(u))
}

// processTimed names the probes whose times of arrival are not the kernel's.
func (t *RunTable) processTimed() (names []string) {
	for i := range t.Probes {
		if p := &t.Probes[i]; p.ProcessTimes && !slices.Contains(names, p.Label) {
			names = append(names, p.Label)
		}
	}
	return names
}

// boundsUnknown is why transfers beside probes have no share of Ideal and of the coded
// bound; empty where there are none, or no bounds.
func (r *Run) boundsUnknown() string {
	if r.Sheet == nil || r.Place != journal.PlaceVirtual && r.Place != journal.PlaceEmulated {
		return ""
	}
	if !slices.ContainsFunc(r.Sheet.Trials, func(t runsheet.Trial) bool {
		return len(t.Probes) > 0 && len(t.Flows) == 1 && t.Flows[0].Duration == 0
	}) {
		return ""
	}
	return "Transfers beside probes have no share of Ideal or of the coded bound, which do not contain the load of the probes."
}

// DelaysMS are one-way delays in milliseconds.
type DelaysMS struct {
	Min, Mean, P50, P95, P99, Max float64
	Percentiles                   []float64 // from 0 to 100; nil: the driver reports none
}

// Correct is delays by one clock: with the offset added, or, where it is not known,
// above the shortest one.
func (c ProbeClock) Correct(d *contract.Delays) DelaysMS {
	add := c.Offset.Nanoseconds()
	if c.Unknown != "" {
		add = -d.MinNS
	}
	of := func(ns int64) float64 { return milliseconds(ns + add) }
	out := DelaysMS{of(d.MinNS), of(d.MeanNS), of(d.P50NS), of(d.P95NS), of(d.P99NS), of(d.MaxNS), nil}
	for _, ns := range d.PercentilesNS {
		out.Percentiles = append(out.Percentiles, of(ns))
	}
	return out
}

func milliseconds(ns int64) float64 { return float64(ns) / 1e6 }

func fmin(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return min(a, b)
}

func fmax(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return max(a, b)
}
