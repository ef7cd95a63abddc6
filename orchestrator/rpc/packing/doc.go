// Package packing gathers the evidence of a campaign from the store, the exports and the
// keys, and has it packed (orchestrator/evidence).
package packing
