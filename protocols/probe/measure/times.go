package measure

import (
	"math"
	"slices"

	"linktrial/protocols/contract"
)

// keep is how many times are kept. Of more they are a uniform sample of all (Vitter's
// algorithm R), from which percentiles are estimated.
const keep = 1 << 20

// times is a distribution of times in nanoseconds.
type times struct {
	count, min, max int64
	sum             float64
	kept            []int64
	drawn           uint64
}

func (t *times) add(d int64) {
	if t.count == 0 {
		t.min, t.max = d, d
	}
	t.count++
	t.min, t.max = min(t.min, d), max(t.max, d)
	t.sum += float64(d)
	if len(t.kept) < keep {
		t.kept = append(t.kept, d)
		return
	}
	t.drawn++
	z := t.drawn * 0x9E3779B97F4A7C15 // SplitMix64
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	if at := z % uint64(t.count); at < keep {
		t.kept[at] = d
	}
}

// mean is 0 of nothing.
func (t *times) mean() int64 {
	if t.count == 0 {
		return 0
	}
	return int64(math.Round(t.sum / float64(t.count)))
}

// distribution is that of the times, with the 101 percentiles or without; nil of nothing.
func (t *times) distribution(percentiles bool) *contract.Delays {
	if t.count == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(t.kept))
	at := func(percent int) int64 { return percentile(sorted, percent) }
	d := &contract.Delays{MinNS: t.min, MeanNS: min(t.max, max(t.min, t.mean())), P50NS: at(50), P95NS: at(95), P99NS: at(99), MaxNS: t.max}
	if !percentiles {
		return d
	}
	d.PercentilesNS = make([]int64, contract.DelayPercentiles)
	for i := range d.PercentilesNS {
		d.PercentilesNS[i] = at(i)
	}
	// A sample need not have the extremes.
	d.PercentilesNS[0], d.PercentilesNS[contract.DelayPercentiles-1] = t.min, t.max
	return d
}
