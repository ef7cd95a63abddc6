package stats

import (
	"cmp"
	"slices"
)

// drawnP is the P of a test by so many drawn permutations, or fewer once enough of them were
// at least as extreme as what was measured (Besag and Clifford 1991): a P that is far from
// small, as most are, takes few. It is below a level no more often than the level says.
// extreme draws one permutation and reports whether its statistic is that extreme.
func drawnP(draws, enough int, extreme func() bool) float64 {
	hits := 0
	for i := 1; i <= draws; i++ {
		if extreme() {
			if hits++; hits == enough {
				return float64(hits) / float64(i)
			}
		}
	}
	return float64(hits+1) / float64(draws+1)
}

// doubledRanks are twice the ranks of values, which are whole also where ties share their
// mean rank, and the sum of t³ − t over the groups of t ties.
func doubledRanks(xs []float64) (ranks []int, ties float64) {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(xs[a], xs[b]) })
	ranks = make([]int, len(xs))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && xs[order[j]] == xs[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			ranks[k] = i + 1 + j
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	return ranks, ties
}
