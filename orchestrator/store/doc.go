// Package store is the orchestrator's one place for what lasts: a pool of
// connections to PostgreSQL with the schema brought up to date. Its queries are
// SQL in queries/, typed by sqlc in dbsqlc/; what results are made from is read
// here as report.Dataset. Comes in: a connection URL. Goes out: a [Store].
//
// The live view of a run that has ended takes a fixed number of queries, not one for
// each attempt.
package store
