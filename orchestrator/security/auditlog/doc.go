// Package auditlog keeps the audit log. Comes in: entries, and calls of callers who have
// not logged in. Goes out: a chain of entries in the store, of anonymous calls a bounded
// number with the sum of the rest, heads signed by the orchestrator, and what the last
// check of all of it found. What is hashed and signed is in internal/auditchain.
package auditlog
