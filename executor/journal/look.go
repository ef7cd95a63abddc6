package journal

import (
	"errors"
	"fmt"
	"strings"

	"linktrial/internal/radio"
)

// Look is what the plan's rule to stop by found after an iteration, by the trials that the
// journal has up to here. It takes effect from the next iteration on.
type Look struct {
	Iteration   int              `json:"iteration"`
	Comparisons []LookComparison `json:"comparisons"`
	// Beaten is the treatments that have no more trials, in the order in which they were
	// beaten, at this look or before.
	Beaten []string `json:"beaten,omitempty"`
	// Stop: one treatment is left, and no further iteration begins.
	Stop bool `json:"stop,omitempty"`
	// Fault is why the rule could not be followed at this look; it then has no effect.
	Fault string `json:"fault,omitempty"`
}

// LookComparison is two treatments held against each other at their last look.
type LookComparison struct {
	Reference string `json:"reference"`
	Value     string `json:"value"`
	Iteration int    `json:"iteration"` // of their last look; 0: they had none
	Pairs     int    `json:"pairs"`
	// RankSum is the smaller rank sum of the signed-rank test, and Boundary the largest with
	// which one of them is beaten; -1 where none is enough.
	RankSum  int     `json:"rank_sum"`
	Boundary int     `json:"boundary"`
	Level    float64 `json:"level"` // of the comparison, of all its looks together
	Decided  bool    `json:"decided,omitempty"`
}

var lookKind = kindOf([]Type{TypeLook},
	"client, in runs whose plan has a rule to stop by",
	"`iteration`, after which the rule looked, `comparisons` (`reference`, `value`, `iteration` of their last look, `pairs`, `rank_sum`, `boundary`, `level`, `decided`), `beaten`: treatments without further trials, `stop`: no further iteration begins; `fault`: why the rule could not be followed",
	func(r *Record, b *Look) error {
		if b.Iteration < 1 || len(b.Comparisons) > maxFlows || len(b.Beaten) > maxFlows {
			return fmt.Errorf("iteration %d, %d comparisons, %d treatments", b.Iteration, len(b.Comparisons), len(b.Beaten))
		}
		for i, c := range b.Comparisons {
			if c.Iteration < 0 || c.Pairs < 0 || c.RankSum < 0 || c.Boundary < -1 || !(c.Level >= 0 && c.Level <= 1) {
				return fmt.Errorf("comparison %d: iteration %d, %d pairs, rank sum %d, boundary %d, level %v", i, c.Iteration, c.Pairs, c.RankSum, c.Boundary, c.Level)
			}
		}
		if b.Stop && b.Fault != "" {
			return errors.New("it stops the run, and could not be followed")
		}
		return r.only(radio.RoleClient)
	},
	func(_ Type, b *Look) string {
		s := fmt.Sprintf("after iteration %d the plan's rule ", b.Iteration)
		switch {
		case b.Fault != "":
			return s + "could not be followed: " + b.Fault
		case b.Stop:
			return s + "stops the run: beaten are " + strings.Join(b.Beaten, ", ")
		case len(b.Beaten) > 0:
			return s + "lets the run go on without " + strings.Join(b.Beaten, ", ")
		}
		return s + "lets the run go on"
	})
