// Package terminal writes for people: tables, words for states and times, a
// campaign as it happens, the stages of a long command. Comes in: answers of the
// orchestrator. Goes out: text, on a terminal with a line that moves.
package terminal
