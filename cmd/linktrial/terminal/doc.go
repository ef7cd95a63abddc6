// Package terminal writes for people: tables, words for states and times, the
// progress of a campaign, the stages of a long command. In: answers of the
// orchestrator. Out: text, on a terminal with a last line that is updated.
package terminal
