// Package report makes tables, figures and exports of a [Dataset]: the terminal
// table, CSV, JSON, Markdown, LaTeX in the layout of Table 2 of breedy-2015, and
// the paper's chart as SVG. Comes in: a Dataset. Goes out: bytes, the same for
// the same Dataset. Imports orchestrator/stats, executor/runsheet,
// executor/journal, orchestrator/plan and internal/unit.
package report
