// Package typeset sets a report as PDF, with the typesetter Typst as its wheel for Python has
// it. Comes in: a document.Document. Goes out: a tagged PDF (PDF/UA-1, ISO 14289-1), the same
// bytes for the same document on every machine. Its files, from the top down:
//
//	typeset.go   a folder for the document, and Typst's process
//	find.go      where Typst is
//	data.go      the document as data for the template report.typ
//	table.go     how a table is set: type size, page, and the plain way of very long ones
//	figure.go    how large a drawing is, and on which page
//	text.go      which characters can be set, and where a long word may break
//
// Texts of people reach Typst as strings of a JSON file only, so that none can be markup.
package typeset
