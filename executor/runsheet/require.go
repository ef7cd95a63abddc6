package runsheet

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"linktrial/internal/radio"
)

// Metric names what a requirement bounds, as plans do. Closed list.
type Metric string

const (
	MetricAverage    Metric = "average"              // throughput of the valid trials, KB/s of 1024 bytes
	MetricDelivered  Metric = "delivered"            // share of the trials whose payload was there by a time
	MetricIdeal      Metric = "share_of_ideal"       // mean over the valid trials
	MetricCodedBound Metric = "share_of_coded_bound" // mean over the valid trials
	MetricFailures   Metric = "failures"             // share of the valid and the failed trials
	MetricRatioTo    Metric = "ratio_to"             // of throughputs, to those of another treatment
	MetricDelayMean  Metric = "delay_mean"           // one-way delay of a probe, ms
	MetricDelayP95   Metric = "delay_p95"            // ms
	MetricDelayP99   Metric = "delay_p99"            // ms
	MetricLoss       Metric = "loss"                 // share of a probe's packets
)

// RequiredLevel is the level of the intervals by which requirements are judged.
const RequiredLevel = 0.95

// Metrics are all there are, in the order of plans.
var Metrics = []Metric{MetricAverage, MetricDelivered, MetricIdeal, MetricCodedBound, MetricFailures, MetricRatioTo, MetricDelayMean, MetricDelayP95, MetricDelayP99, MetricLoss}

// OfProbes reports whether the metric is one of probes, not of transfers.
func (m Metric) OfProbes() bool {
	switch m {
	case MetricDelayMean, MetricDelayP95, MetricDelayP99, MetricLoss:
		return true
	}
	return false
}

// Requirement is a threshold that the plan stated before the run, for one treatment or one
// probe of it: the run's results pass it, fail it or leave it undecided.
type Requirement struct {
	Entry  int    `json:"entry"` // its place in the plan's list, from 1
	Metric Metric `json:"metric"`
	// Treatment is that whose trials it is about; of a probe, the treatment or mix whose
	// transfers run beside it, and empty where none do.
	Treatment string     `json:"treatment,omitempty"`
	Probe     string     `json:"probe,omitempty"`
	From      radio.Role `json:"from,omitempty"` // where the probe comes from
	// By is, of delivered, the time since the first attempt to connect.
	By time.Duration `json:"by_ns,omitempty"`
	// Reference is, of ratio_to, the other treatment.
	Reference string `json:"reference,omitempty"`
	// AtLeast and AtMost, one or both, bound the metric, in its unit; shares and ratios are
	// numbers, 1 being 100 %.
	AtLeast *float64 `json:"at_least,omitempty"`
	AtMost  *float64 `json:"at_most,omitempty"`
}

// Called is what people call the metric: "delivered by 120 s".
func (r *Requirement) Called() string {
	switch r.Metric {
	case MetricDelivered:
		return fmt.Sprintf("delivered by %g s", r.By.Seconds())
	case MetricIdeal:
		return "share of Ideal"
	case MetricCodedBound:
		return "share of the coded bound"
	case MetricFailures:
		return "failed"
	case MetricRatioTo:
		return "throughput"
	case MetricDelayMean:
		return "mean delay"
	case MetricDelayP95:
		return "95th percentile of the delay"
	case MetricDelayP99:
		return "99th percentile of the delay"
	}
	return string(r.Metric)
}

// Required says for people what the sheet requires, a line each: "Haul: average at least
// 100 KB/s".
func (s *Sheet) Required() (out []string) {
	for i := range s.Require {
		r := &s.Require[i]
		of := s.Label(r.Treatment)
		if r.Probe != "" {
			beside := "alone"
			if r.Treatment != "" {
				beside = "beside " + of
			}
			of = fmt.Sprintf("%s from the %s, %s", s.Label(r.Probe), r.From, beside)
		}
		line := fmt.Sprintf("%s: %s, %s", of, r.Called(), r.bounds())
		if r.Reference != "" {
			line += " of that of " + s.Label(r.Reference)
		}
		out = append(out, line)
	}
	return out
}

// bounds are what the metric must meet: "at least 100 KB/s".
func (r *Requirement) bounds() string {
	unit, scale := " %", 100.0
	switch r.Metric {
	case MetricAverage:
		unit, scale = " KB/s", 1
	case MetricDelayMean, MetricDelayP95, MetricDelayP99:
		unit, scale = " ms", 1
	}
	amount := func(x *float64) string {
		return strconv.FormatFloat(math.Round(*x*scale*1000)/1000, 'f', -1, 64)
	}
	switch {
	case r.AtLeast != nil && r.AtMost != nil:
		return amount(r.AtLeast) + " to " + amount(r.AtMost) + unit
	case r.AtLeast != nil:
		return "at least " + amount(r.AtLeast) + unit
	}
	return "at most " + amount(r.AtMost) + unit
}

// checkRequirements reports why the requirements cannot be judged.
func (s *Sheet) checkRequirements() error {
	for i := range s.Require {
		r := &s.Require[i]
		if err := s.checkRequirement(r); err != nil {
			return fmt.Errorf("requirement %d of the sheet, of entry %d: %w", i+1, r.Entry, err)
		}
	}
	return nil
}

func (s *Sheet) checkRequirement(r *Requirement) error {
	switch {
	case !slices.Contains(Metrics, r.Metric):
		return fmt.Errorf("metric %.40q, which this Linktrial does not know", r.Metric)
	case r.Entry < 1:
		return fmt.Errorf("entry %d of the plan's list, expected 1 or more", r.Entry)
	case r.AtLeast == nil && r.AtMost == nil:
		return fmt.Errorf("metric %s without a bound", r.Metric)
	case r.AtLeast != nil && r.AtMost != nil && !(*r.AtLeast <= *r.AtMost):
		return fmt.Errorf("at least %g and at most %g", *r.AtLeast, *r.AtMost)
	case (r.Metric == MetricDelivered) != (r.By > 0):
		return fmt.Errorf("metric %s with the time %s, which delivered alone has", r.Metric, r.By)
	case (r.Metric == MetricRatioTo) != (r.Reference != ""):
		return fmt.Errorf("metric %s with the reference %.60q, which ratio_to alone has", r.Metric, r.Reference)
	case r.Metric.OfProbes() != (r.Probe != ""):
		return fmt.Errorf("metric %s of probe %.60q", r.Metric, r.Probe)
	}
	for _, x := range []*float64{r.AtLeast, r.AtMost} {
		if x != nil && (!(*x >= 0) || math.IsInf(*x, 1)) {
			return fmt.Errorf("bound %g of metric %s, expected no negative one", *x, r.Metric)
		}
	}
	return s.checkSubject(r)
}

// checkSubject reports what a requirement names and the sheet does not have.
func (s *Sheet) checkSubject(r *Requirement) error {
	if r.Probe != "" {
		if t := s.Treatment(r.Probe); t == nil || !t.Probe && t.Missing == "" {
			return fmt.Errorf("probe %.60q, which the sheet does not have", r.Probe)
		}
		if r.From != radio.RoleClient && r.From != radio.RoleServer {
			return fmt.Errorf("probe %s from the %.20q, expected client or server", r.Probe, r.From)
		}
		return nil
	}
	for _, name := range []string{r.Treatment, r.Reference} {
		if t := s.Treatment(name); (t == nil || t.Probe) && (name != "" || name == r.Treatment) {
			return fmt.Errorf("treatment %.60q, which the sheet does not have", name)
		}
	}
	return nil
}
