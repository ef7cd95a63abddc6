// Package packing gathers the evidence of a campaign from the store, the exports and the
// keys, and has it packed (orchestrator/evidence). Comes in: which campaign. Goes out: a bag on
// disk that is sent as a file, and a list of what it lacks.
//
// Its files, from the bottom up: tables.go (which rows of the store are in a bag, and why the
// others are not), journals.go (journals and what nodes signed of them), files.go (what the
// orchestrator has beside the store: drivers, radios, keys, exported files), gather.go (the
// work), packing.go (the service).
package packing
