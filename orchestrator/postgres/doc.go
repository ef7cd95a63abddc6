// Package postgres runs a private PostgreSQL for an orchestrator that was
// given no database: one server a data folder, reachable by a Unix socket
// alone; and it keeps a second user out of a data folder. Comes in: a data
// folder. Goes out: a connection URL, until Stop. Imports internal/process.
package postgres
