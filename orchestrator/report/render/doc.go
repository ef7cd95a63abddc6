// Package render writes results as files: the terminal's tables, CSV, JSON,
// Markdown, LaTeX in the layout of Table 2 of breedy-2015, and the drawings of
// report/figure. Comes in: a report.Dataset. Goes out: bytes, the same for the
// same Dataset.
package render
