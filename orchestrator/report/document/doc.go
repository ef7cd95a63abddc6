// Package document is the report of campaigns for people who were not there: one model
// ([Document]), made of an analysis by [Of], and its renderers. Comes in: a
// report.Analysis. Goes out: HTML in one file that needs no network ([HTML]), the same bytes
// for the same results.
package document
