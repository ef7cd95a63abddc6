// Package reporttest makes datasets that tests of reports are fed with: one
// without incidents, one in which all that a report can say occurs, swept ones,
// and ones meant to break a format.
package reporttest
