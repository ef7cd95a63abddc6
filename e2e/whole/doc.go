// Package whole tests orchestrator and agents together in one process, with a
// real database, real drivers and real calls between them, where a test must
// stand on the way of what they say to each other. It may import everything.
package whole
