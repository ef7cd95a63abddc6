// Package postgres runs a private PostgreSQL for an orchestrator that was
// given no database: one server a data folder, reachable by a Unix socket
// alone. Comes in: a data folder. Goes out: a connection URL, until Stop.
// Imports internal/process.
package postgres
