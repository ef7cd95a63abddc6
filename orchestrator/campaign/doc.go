// Package campaign moves runs along: it chooses nodes, says what each node is to
// do now, and derives every state from the store, so that a killed orchestrator
// goes on where it was. Comes in: campaigns, what nodes say of themselves, word
// of stored records. Goes out: assignments, changes of state.
package campaign
