// Package report is the model of results: what was measured ([Dataset]), the
// tables and curves that follow from it ([Analysis]), and how far they lie from
// published values ([Against]). Comes in: a Dataset. Goes out: values, the same
// for the same Dataset. report/render writes them as files, report/figure draws
// them, report/wording words them.
//
// The files, from the top down; none uses one above it (a test in
// internal/importrules holds this):
//
// What a plan can find:
//
//   - power: the smallest differences that the comparisons of a plan find
//   - powerrule: what a plan's rule to stop by does, and how many iterations it takes
//   - spread: how much ratios varied in earlier runs
//
// What an analysis is used for:
//
//   - imported: another orchestrator's export, held against what its attempts give
//   - json: the export of everything
//   - unusual: readings of telemetry outside their usual range
//   - overruns: treatments held against each other over runs, as places or days
//   - runsets: runs that differ in radio, topology or campaign alone
//   - difference: campaigns held against each other
//   - against: published values held against ours
//   - sweep: curves of a metric over a swept axis
//   - group: the runs of a group of the plan, and a metric's mean over them
//
// A campaign and a run of it:
//
//   - analysis: all runs of a dataset, summarised and with their notes
//   - summary: a run's table
//   - blocks: whether treatments differ as a whole, and whether iterations do
//   - stopping: what a rule to stop by found
//   - conclusion: which treatment of a run leads, in a sentence
//   - require: which requirements of the plan a run passes
//   - probes: the rows of probes
//   - capacity: the rows of searches for the capacity
//   - messages: the rows of messages
//   - tcp: the metrics of RFC 6349
//   - baseline: the round-trip time without load that they rest on
//   - notes: on control packets, starved hosts and unknown bounds
//   - merge: several datasets as one
//
// A run's trials as samples, and metrics of them:
//
//   - delivery: when the payload was there, over failed trials too
//   - estimate: a metric with its variance
//   - bound: Ideal and the coded bound
//   - observe: what the trials of a treatment gave
//
// Tables and names:
//
//   - cells: cells of tables, their headers and legends
//   - layout: runs side by side, as in Table 2 of breedy-2015
//   - words: what tables say
//   - table: tables and their rows
//   - rule: what a table has of a rule to stop by
//   - published: metrics and published values, for people
//   - number: rounded numbers and intervals
//
// What was measured:
//
//   - voice: the quality of speech that a probe was
//   - sequence: the attempts of a time–sequence diagram
//   - attempt: which attempts count, and their throughput
//   - run: where a run stands among those of its campaign, and where its results come from
//   - dataset: runs, trials and attempts
//   - sampled: samples of one iteration of a run, for drawings
//   - ownwords: what directors add to a report
//   - origin: where results come from that another orchestrator measured
//   - window: what flows delivered in a common time
//   - probe: delays of probes, and the clocks that they are by
package report
