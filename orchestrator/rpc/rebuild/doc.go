// Package rebuild makes a campaign's exported files and report again from the journals in its
// bag of evidence, and says which of them differ (docs/evidence.md, "Made again"). Comes in: a
// bag, whose content is a stranger's. Goes out: of each file, whether it is the same byte for
// byte, and what contradicts the journals.
//
// A private PostgreSQL gets the rows that do not follow from journals, then the journals
// themselves, by the code that takes deliveries of nodes. What follows from rows, from run
// sheets or from journals is never taken from a row. No SQL is built of what is in a bag.
//
// The files, from the top down:
//
//	rebuild.go   the steps, their order and progress
//	exports.go   exported files, made again and held against those of the bag
//	catalog.go   what the plan may name, for plans with published values
//	marks.go     what Linktrial decides from all journals together, held against the rows
//	journals.go  journals, delivered as nodes do
//	rows.go      rows of the bag
//	bag.go       what is read of a bag
//	differ.go    the first difference of two files
package rebuild
