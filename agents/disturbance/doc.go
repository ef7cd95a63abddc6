// Package disturbance watches what rules of validity are about and no source of
// telemetry reads: whether the node's clock steps, and traffic on the radios'
// interfaces that is not of a run. Over real radios it also watches, whatever the rules are,
// at which listeners' ports traffic passes.
//
// Comes in: the rules, and the names of the interfaces. Goes out: records of the
// journal, see [journal.Watched].
package disturbance
