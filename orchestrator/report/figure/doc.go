// Package figure draws results as SVG: throughput by treatment as breedy-2015
// draws it, curves over a swept parameter, and time–sequence diagrams. Comes in:
// a report.Analysis, or a run with its samples. Goes out: a drawing, the same
// bytes for the same results.
package figure
