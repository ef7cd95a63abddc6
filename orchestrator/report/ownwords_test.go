package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
)

func ownWords(campaign string) report.Words {
	return report.Words{Campaign: campaign, Title: "A day on the hill", Author: "Ada Meyer", Summary: "One.\n\nTwo.", Remarks: map[string]string{"results": "Look at K Lot."},
		By: "ada", At: time.Date(2026, 5, 1, 8, 30, 0, 0, time.UTC)}
}

func TestWordsAreChecked(t *testing.T) {
	w := ownWords("c")
	require.NoError(t, w.Check())
	for want, change := range map[string]func(*report.Words){
		"title: 201 characters, expected at most 200":                                                      func(w *report.Words) { w.Title = strings.Repeat("ß", 201) },
		"author: it has the control character U+000A at byte 1, expected text without any, in one line":    func(w *report.Words) { w.Author = "a\nb" },
		"summary: 10001 characters, expected at most 10000":                                                func(w *report.Words) { w.Summary = strings.Repeat("x", 10_001) },
		"summary: it has the control character U+202E at byte 0":                                           func(w *report.Words) { w.Summary = "\u202ex" },
		"summary: it is not valid UTF-8":                                                                   func(w *report.Words) { w.Summary = "\xff" },
		"remark on results: it has the control character U+001B at byte 0":                                 func(w *report.Words) { w.Remarks["results"] = "\x1b[2J" },
		"remark on results: 5001 characters, expected at most 5000":                                        func(w *report.Words) { w.Remarks["results"] = strings.Repeat("x", 5001) },
		`remark on result: a report has no such chapter (did you mean "results"?); there are conclusion, `: func(w *report.Words) { w.Remarks["result"] = "x" },
	} {
		w := ownWords("c")
		change(&w)
		require.ErrorContains(t, w.Check(), want)
	}
	w.Title, w.Summary, w.Remarks["results"] = strings.Repeat("中", 200), strings.Repeat("👩", 10_000), "a\tb\nc"
	require.NoError(t, w.Check(), "bounds are of characters")
}

func TestWordsAreTidied(t *testing.T) {
	w := report.Words{Title: " a ", Author: "\t", Summary: "\r\none\r\n\r\ntwo\rthree\n", Remarks: map[string]string{"results": " \n ", "method": " x "}}
	w.Tidy()
	require.Equal(t, report.Words{Title: "a", Summary: "one\n\ntwo\nthree", Remarks: map[string]string{"method": "x"}}, w)
	require.False(t, w.Empty())
	w = report.Words{Remarks: map[string]string{"results": " "}}
	w.Tidy()
	require.True(t, w.Empty())
}

func TestParagraphs(t *testing.T) {
	require.Equal(t, []string{"one two", "three"}, report.Paragraphs("\n one\n two \n \t\n\n\nthree\n"))
	require.Empty(t, report.Paragraphs(" \n\n\u200b\n"))
}

func TestSourceOfWords(t *testing.T) {
	w := ownWords("c")
	require.Equal(t, "Words of Ada Meyer, not computed; written by ada 2026-05-01 08:30:00 UTC.", w.Source())
	w.Author = ""
	require.Equal(t, "Words of ada, not computed; written 2026-05-01 08:30:00 UTC.", w.Source())
	w.By, w.Imported = "", anImport()
	require.Equal(t, "Words of the director, not computed; written 2026-05-01 08:30:00 UTC; they came with the campaign, which was imported from results.json of company B by ada, 2026-05-01 08:30:00 UTC.", w.Source())
}

// An export has the words, and what is read of it is checked as what people save.
func TestWordsInExports(t *testing.T) {
	with := func(words ...report.Words) string {
		return exported(t, func(ds *report.Dataset) { ds.Words = words })
	}
	whole := with(ownWords("their4xq"))
	ds, err := report.ReadImport([]byte(whole))
	require.NoError(t, err)
	require.Equal(t, []report.Words{ownWords("their4xq")}, ds.Words)
	var again bytes.Buffer
	require.NoError(t, report.Analyse(ds, report.Options{Bootstrap: true}).WriteJSON(&again))
	require.Equal(t, whole, again.String())
	require.NotContains(t, exported(t, nil), `"words"`)

	long, imported := ownWords("their4xq"), ownWords("their4xq")
	long.Summary, imported.Imported = strings.Repeat("x", 10_001), anImport()
	for want, words := range map[string][]report.Words{
		`results: words of campaign "their4xq": summary: 10001 characters`:                                     {long},
		`results: words of campaign "their4xq" are in the file twice`:                                          {ownWords("their4xq"), ownWords("their4xq")},
		`words of campaign "ours7k2p", expected those of campaign their4xq`:                                    {ownWords("ours7k2p")},
		`words of campaign "their4xq", expected those of campaign their4xq, as its orchestrator exported them`: {imported},
	} {
		_, err := report.ReadImport([]byte(with(words...)))
		require.ErrorContains(t, err, want)
	}
}

func TestMergedWords(t *testing.T) {
	one, two := &report.Dataset{Campaign: "a", Words: []report.Words{ownWords("a")}}, &report.Dataset{Campaign: "b", Words: []report.Words{ownWords("b")}}
	require.Equal(t, []report.Words{ownWords("a"), ownWords("b")}, report.Merge([]*report.Dataset{one, two, one, {Campaign: "c"}}).Words)
}
