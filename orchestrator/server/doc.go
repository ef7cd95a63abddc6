// Package server starts and stops a whole orchestrator: the
// database (private where none is given), the store, ingest, the campaign engine,
// and one HTTP server with API, health and metrics. Comes in: a Config. Goes out:
// a [Server] at an address.
package server
