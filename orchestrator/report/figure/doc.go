// Package figure draws results as SVG: throughput by treatment as breedy-2015
// draws it, curves over a swept parameter, and time–sequence diagrams; and the
// places of nodes. Comes in: a report.Analysis, a run with its samples, or a
// topology. Goes out: a drawing, the same bytes for the same results.
package figure
