// Package measuring answers MeasureService: it starts the plans that orchestrator/measure
// composes for the connected nodes, and reads and judges what their runs found.
package measuring
