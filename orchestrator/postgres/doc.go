// Package postgres runs a private PostgreSQL for an orchestrator that was given
// no database: one server a data folder, reachable by a Unix socket alone. And it
// keeps a second user out: [Lock] of a data folder, [TakeClaim] of a database.
// Comes in: a data folder, a connection URL. Goes out: a connection URL, until
// Stop; whether one is alone.
package postgres
