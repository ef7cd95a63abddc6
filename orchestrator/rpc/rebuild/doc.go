// Package rebuild makes a campaign's exported files and report again from the journals in its
// bag of evidence, and says which of them differ (orchestrator/evidence).
package rebuild
