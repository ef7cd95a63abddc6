// Package whole tests orchestrator and agents in one process, with a real database,
// real drivers and real calls, for tests that must change the messages between them.
// It may import everything.
package whole
