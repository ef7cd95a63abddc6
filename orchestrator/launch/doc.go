// Package launch starts plans. People start them through orchestrator/rpc, and at set
// times orchestrator/library does; both get the same campaign, or the same error.
//
// Comes in: the text of a plan. Goes out: a queued campaign, or why there is none, as
// an error to branch on: [yamldoc.Problems] are faults of the plan, which stay;
// [Missing] is what nodes or drivers lack, which may come; [Unproven] is what is
// lacking of a required preflight.
package launch
