// Package reporttest makes datasets that tests of reports are fed with: one
// without incidents, one in which all that a report can say occurs, swept ones,
// and ones meant to break a format. Imports orchestrator/report, executor and
// internal/radio.
package reporttest
