// Package store is the orchestrator's one place for what lasts: a pool of
// connections to PostgreSQL with the schema brought up to date, and transactions. A
// room's queries are SQL in its folder queries/, which sqlc makes the package ROOMdb from
// (orchestrator/security/access/accessdb); nobody else imports it. Here are those that several
// rooms need ([Conn]); what results are made from is read here as report.Dataset. Comes in:
// a connection URL. Goes out: a [Store].
//
// The live view of a run that has ended takes a fixed number of queries, not one for
// each attempt.
package store
