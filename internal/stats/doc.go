// Package stats is the arithmetic of field trials: descriptions of a sample,
// intervals, comparisons paired by iteration, of one run and over several, tests that
// look several times (group-sequential), the papers' own metrics, and the quality of
// voice by the E-model. Comes in: numbers and seeds.
// Goes out: numbers.
//
// What cannot be computed is NaN, never zero: the mean of no values, the standard
// deviation of one, an interval of one. A NaN among the values makes every result
// of them NaN; an infinite one, every result that needs arithmetic with it. No
// function panics, keeps its arguments or changes them.
package stats
