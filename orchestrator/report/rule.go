package report

import "linktrial/internal/stats"

// Stopping is what became of a run whose plan has a rule to stop by: how it looks, what it
// found, and what the trials tell of pairs of treatments, allowing for all looks.
type Stopping struct {
	Looks    []int          `json:"looks"` // the iterations after which the rule looks
	Alpha    float64        `json:"alpha"` // over all looks and comparisons
	Spending stats.Spending `json:"spending"`
	// After is the iteration of the last look that there was; 0: none.
	After   int  `json:"after_iteration"`
	Stopped bool `json:"stopped"` // at that look, before the last iteration
	// Beaten is the treatments that have no trials after a look, in order.
	Beaten []Beaten `json:"beaten"`
	// Comparisons is every two treatments at their last look, by what counts now.
	Comparisons []StopComparison `json:"comparisons"`
	// Since is a sentence where what counts now would have had the rule find something else:
	// marks and the other nodes' journals come later than the looks. Fault is why the rule could
	// not be followed.
	Since string `json:"since,omitempty"`
	Fault string `json:"fault,omitempty"`
}

// Beaten is a treatment that the rule found beaten.
type Beaten struct {
	Treatment string `json:"treatment"`
	Label     string `json:"label"`
	After     int    `json:"after_iteration"`
}

// StopComparison holds two treatments against each other, over the iterations up to their last
// look in which both have an outcome. Ratios are of times to delivery, in which a trial that
// failed counts as the horizon.
type StopComparison struct {
	Reference string `json:"reference"`
	Value     string `json:"value"`
	After     int    `json:"after_iteration"` // their last look; 0: they had none
	Pairs     int    `json:"pairs"`
	// Ratio is value / reference: the median-unbiased estimate where the comparison was decided
	// before the last look, else that of Hodges and Lehmann.
	Ratio    *float64 `json:"ratio"`
	Unbiased bool     `json:"median_unbiased,omitempty"`
	// RatioCI is the repeated confidence interval: with those of all looks and all
	// comparisons it contains the ratios in 95 % of runs, if alpha is 5 %.
	RatioCI *Range `json:"ratio_repeated_ci"`
	// AnytimeCI is of a run under way: of all iterations so far, also after the last look. With
	// those of all comparisons, and whenever one looks, it contains the ratios in 95 % of runs.
	AnytimeCI *Range   `json:"ratio_anytime_ci,omitempty"`
	P         *float64 `json:"stagewise_p"` // of the comparison alone, by the order of its stages
	Level     *float64 `json:"level"`       // that the comparison has of alpha, after Holm
	Decided   bool     `json:"decided"`
}
