// Package report makes tables and exports of a [Dataset]: the terminal table,
// CSV, JSON, Markdown and LaTeX in the layout of Table 2 of breedy-2015. Comes
// in: a Dataset. Goes out: bytes. Imports orchestrator/stats, executor/runsheet
// and executor/journal.
package report
