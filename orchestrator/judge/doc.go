// Package judge decides what is known of an ended attempt only where the journals of
// all nodes are together: whether the apparatus was in order meanwhile ([Outages]), what
// control traffic it met ([Control]), and whether it kept the plan's rules of validity and
// had the air to itself ([Run.Validity]). Comes in: facts, as values. Goes out: marks with
// their reasons, and what cannot be decided. It imports no store; times are the
// orchestrator's, as far as each node's [Clock] is known.
package judge
