// Package audit holds a run's journals, the store and the exports against each other,
// and against the faults that were injected while it ran. It reads all of them itself,
// by what docs/data-format.md says of them: code whose work it checks would not find
// its own faults.
//
// Comes in: a run ([Run]) as the orchestrator's API has it, its nodes' journals as
// files, its exports. Goes out: a [Report] of named checks, each with what it proved
// over how many objects, and its findings.
package audit
