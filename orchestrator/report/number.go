package report

import (
	"math"
	"strconv"

	"linktrial/internal/stats"
)

const (
	level = 0.95 // of every interval in a report
	// minPairs is the fewest iterations that a comparison is made of.
	minPairs = 3
)

// Range is an interval, both ends included.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Rounded rounds to nine significant digits, so that processors which fuse
// multiplication and addition write the same report; nil for what has no value.
func Rounded(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	r, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 9, 64), 64)
	if err != nil {
		return nil // rounding up left the range of numbers
	}
	r += 0 // no negative zero
	return &r
}

func meanInterval(xs []float64) *Range { return interval(stats.MeanInterval(xs, level)) }

func interval(i stats.Interval) *Range {
	low, high := Rounded(i.Low), Rounded(i.High)
	if low == nil || high == nil {
		return nil
	}
	return &Range{*low, *high}
}
