// Package report is the model of results: what was measured ([Dataset]), the
// tables and curves that follow from it ([Analysis]), and how far they lie from
// published figures ([Against]). Comes in: a Dataset. Goes out: figures, the same
// for the same Dataset. report/render writes them as files, report/figure draws
// them, report/wording words them.
package report
