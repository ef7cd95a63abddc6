// Package plan reads plans: what is compared, over which radios and topologies,
// how often and in which order. Comes in: a plan's YAML and a [Catalog] of what
// exists. Goes out: a [Plan] with every name resolved, or all that is wrong with
// it at once. Pure: no clock, no files.
//
// The keys of plans are declared in keys.go and require_keys.go ([Language]); docs/plans.md is
// the page for those who write plans, and its tables follow from the declaration. parse.go reads
// the plan, cell.go its groups and runs, treatment.go with via.go what is compared, flow.go and
// probe.go what trials are made of, sweep.go what varies, valid.go rules of validity, stop.go
// rules to stop by, require.go what is required of results, attainable.go whether any results
// can pass that, published.go values of papers. template.go makes a new plan.
package plan
