// Package measure is what *Measure this link* decides: which plan measures a link in a
// bounded time, and for what the link is good enough by what the plan's runs found. It is
// pure; orchestrator/rpc/measuring starts the plans and reads their results.
//
// Comes in: a radio, a topology, the tables of runs (orchestrator/report), thresholds,
// also of a file. Goes out: the text of a plan, judgements, the page and a series as text, as
// CSV and as KML.
package measure
