package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/report/reporttest"
)

// exported is the JSON export of a campaign whose runs are named and hashed as a store has them.
func exported(t testing.TB, change func(*report.Dataset)) string {
	t.Helper()
	ds := reporttest.Campaign(reporttest.NewRun("their4xq-1", "x", "X", "y", "Y", 1000, 3, reporttest.Cubic, reporttest.Haul))
	ds.Campaign, ds.Complete = "their4xq", true
	for i := range ds.Runs {
		sheet, err := ds.Runs[i].Sheet.Encode()
		require.NoError(t, err)
		ds.Runs[i].SheetHash = runsheet.Hash(sheet)
	}
	if change != nil {
		change(ds)
	}
	var b bytes.Buffer
	require.NoError(t, report.Analyse(ds, report.Options{Bootstrap: true}).WriteJSON(&b))
	return b.String()
}

func TestReadImport(t *testing.T) {
	whole := exported(t, nil)
	ds, err := report.ReadImport([]byte(whole))
	require.NoError(t, err)
	require.Equal(t, "their4xq", ds.Campaign)
	again := func(from, to string) string {
		t.Helper()
		require.Contains(t, whole, from)
		return strings.Replace(whole, from, to, 1)
	}
	elapsed := strings.Index(whole, `"elapsed_ns": `) + len(`"elapsed_ns": `)
	require.Greater(t, elapsed, 100)
	average := strings.Index(whole, `"average_kb_per_s": `) + len(`"average_kb_per_s": `)
	require.Greater(t, average, 100)
	for name, c := range map[string]struct{ text, want string }{
		"cut":               {whole[:len(whole)/2], "before its JSON does: it was cut"},
		"no JSON":           {"run,treatment\n", "line 1, column 1: invalid character 'r'"},
		"a text":            {again(`"elapsed_ns": `, `"elapsed_ns": "x", "y": `), "elapsed_ns is a string there, which it is in no export"},
		"a bad time":        {again(`"created": "`, `"created": "on `), "does not have the form that exports have"},
		"more":              {whole + "{}", "more than one document"},
		"a changed time":    {whole[:elapsed] + "7" + whole[elapsed:], "but the attempts in the file give"},
		"a changed average": {whole[:average] + "7" + whole[average:], "tables[0] (their4xq-1).rows[0] (tcp-cubic).average_kb_per_s is 7"},
		"a lost row":        {again(`"rows": [`, `"rows": [], "x": [`), "tables[0] (their4xq-1).rows is [], but the attempts in the file give"},
		"an unknown field":  {again(`"average_kb_per_s": `, `"goodput_kb_per_s": 7, "average_kb_per_s": `), "tables[0] (their4xq-1).rows[0] (tcp-cubic).goodput_kb_per_s is not known to this version of Linktrial"},
		"a later version":   {again(`"elapsed_ns": `, `"energy_joules": 7, "elapsed_ns": `), "energy_joules is not known to this version of Linktrial: a later version exported the file"},
		"other methods":     {again("Student's t, not below 0", "bootstrap"), "methods."},
		"a later format":    {again(`"format": 3`, `"format": 4`), "format 4, this Linktrial reads up to 3"},
		"another plan":      {again(`"their4xq-1"`, `"ours7k2p-1"`), "expected a run of campaign their4xq"},
		"not ended":         {exported(t, func(ds *report.Dataset) { ds.Complete = false }), "had not ended"},
		"under way":         {exported(t, func(ds *report.Dataset) { ds.Runs[0].State = "running" }), `its state is "running", expected one of completed, aborted, stopped`},
		"no run":            {exported(t, func(ds *report.Dataset) { ds.Runs = nil }), "has no run"},
		"several":           {exported(t, func(ds *report.Dataset) { ds.Campaign = "their4xq, ours7k2p" }), "one whole campaign"},
		"twice":             {exported(t, func(ds *report.Dataset) { ds.Runs = append(ds.Runs, ds.Runs[0]) }), "twice"},
		"another sheet":     {exported(t, func(ds *report.Dataset) { ds.Runs[0].Sheet.Seed++ }), "expected " + ds.Runs[0].SheetHash},
		"a lost trial":      {exported(t, func(ds *report.Dataset) { ds.Runs[0].Trials = ds.Runs[0].Trials[1:] }), "expected the 3 of its sheet"},
		"imported there":    {exported(t, func(ds *report.Dataset) { ds.Runs[0].Imported = anImport() }), "imported from results.json of company B by ada, 2026-05-01 08:30:00 UTC: import that file"},
		"large":             {strings.Repeat(" ", report.MaxImport+1), "expected at most"},
	} {
		_, err := report.ReadImport([]byte(c.text))
		require.ErrorContains(t, err, c.want, name)
	}
}

// A file that another program has written again has the same values, and one of an earlier
// version has fewer fields.
func TestReadImportWrittenOtherwise(t *testing.T) {
	var tree map[string]any
	require.NoError(t, json.Unmarshal([]byte(exported(t, nil)), &tree))
	row := tree["tables"].([]any)[0].(map[string]any)["rows"].([]any)[0].(map[string]any)
	require.Contains(t, row, "p95_kb_per_s")
	delete(row, "p95_kb_per_s")
	row["goodput_kb_per_s"] = nil
	run := tree["dataset"].(map[string]any)["runs"].([]any)[0].(map[string]any)
	require.Contains(t, run, "clocks")
	run["clocks"] = nil
	b, err := json.Marshal(tree)
	require.NoError(t, err)
	_, err = report.ReadImport(b)
	require.NoError(t, err)
}

// compared gives a dataset runs of several treatments, over unnamed radios.
func compared(t *testing.T, ds *report.Dataset) {
	t.Helper()
	ds.Runs = reporttest.Swept().Runs
	for i := range ds.Runs {
		r := &ds.Runs[i]
		r.ID, r.Place = fmt.Sprintf("their4xq-%d", 1+i), journal.PlaceUnnamed
		sheet, err := r.Sheet.Encode()
		require.NoError(t, err)
		r.SheetHash = runsheet.Hash(sheet)
	}
}

// Exports that have no times to delivery are of versions that concluded from averages alone:
// their conclusion is not held against today's. That of an export with such times is.
func TestReadImportOfEarlierConclusions(t *testing.T) {
	var tree map[string]any
	require.NoError(t, json.Unmarshal([]byte(exported(t, func(ds *report.Dataset) { compared(t, ds) })), &tree))
	table := tree["tables"].([]any)[0].(map[string]any)
	require.Contains(t, table, "conclusion")
	table["conclusion"] = "A leads B by 20 %: decided."
	read := func() error {
		b, err := json.Marshal(tree)
		require.NoError(t, err)
		_, err = report.ReadImport(b)
		return err
	}
	require.ErrorContains(t, read(), "conclusion is ")
	for _, r := range table["rows"].([]any) {
		delete(r.(map[string]any), "delivery")
	}
	require.NoError(t, read())
}

// An export of an earlier version, which called values figures, is read, and says what it
// said in the words of today, once.
func TestReadImportOfEarlierWords(t *testing.T) {
	now := exported(t, func(ds *report.Dataset) {
		ds.Notes = []string{"The plan's published values are left out, as it does not read with today's radios, topologies and drivers: x"}
		compared(t, ds)
		for i := range ds.Runs {
			r := &ds.Runs[i]
			for k := range r.Trials {
				tr := &r.Trials[k]
				a := &tr.Attempts[len(tr.Attempts)-1]
				if a.Host = (&journal.HostLoad{Missed: a.Duration}); tr.Iteration > 2 {
					a.Verdict, tr.Verdict = journal.TimedOut, journal.TimedOut
				}
			}
		}
	})
	earlier := now
	for today, before := range map[string]string{
		"published values are not held against":     "published figures are not held against",
		"gone when the value was first made":        "gone when the figure was first made",
		"published values are left out":             "published figures are left out",
		"so that their values may be the machine's": "so that their figures may be the machine's",
		"valid values of both":                      "valid figures of both",
	} {
		require.Contains(t, now, today)
		earlier = strings.ReplaceAll(earlier, today, before)
	}
	ds, err := report.ReadImport([]byte(earlier))
	require.NoError(t, err)
	var again bytes.Buffer
	require.NoError(t, report.Analyse(ds, report.Options{Bootstrap: true}).WriteJSON(&again))
	require.Equal(t, now, again.String())
	_, err = report.ReadImport([]byte(strings.Replace(earlier, "valid figures of both", "valid numbers of both", 1)))
	require.ErrorContains(t, err, "conclusion is ")
}

func anImport() *report.Import {
	return &report.Import{Campaign: "their4xq", Origin: "company B", File: "results.json", SHA256: strings.Repeat("ab", 32), By: "ada", At: time.Date(2026, 5, 1, 8, 30, 0, 0, time.UTC)}
}

// Every output of an imported campaign says that it was imported, also beside one's own,
// and no output of one's own does.
func TestImportedIsMarked(t *testing.T) {
	ours, theirs := reporttest.Probed(), reporttest.Probed()
	ours.Campaign, theirs.Campaign = "ours7k2p", "their4xq"
	for i := range theirs.Runs {
		ours.Runs[i].ID, theirs.Runs[i].ID = "ours7k2p-"+ours.Runs[i].ID, "their4xq-"+theirs.Runs[i].ID
	}
	marked := *theirs
	marked.Runs = append([]report.Run{}, theirs.Runs...)
	for i := range marked.Runs {
		marked.Runs[i].Imported = anImport()
	}
	text := func(ds *report.Dataset, format string) string {
		t.Helper()
		f, err := render.As(ds, format, report.Options{})
		require.NoError(t, err, format)
		b, err := f.Content()
		require.NoError(t, err, format)
		return strings.Join(strings.Fields(string(b)), " ")
	}
	const words = "imported from results.json of company B by ada, 2026-05-01 08:30:00 UTC"
	rows := map[string]bool{"telemetry-csv": true, "breaches-csv": true, "against-csv": true} // files that have no row here
	for _, format := range render.OfDataset() {
		if format == "report-pdf" {
			continue // its texts are compressed; they are those of the same document as report's
		}
		alone, beside := text(&marked, format), text(report.Merge([]*report.Dataset{ours, &marked}), format)
		require.NotContains(t, text(report.Merge([]*report.Dataset{ours, theirs}), format), words, format)
		want := words
		switch {
		case rows[format]:
			want = ",imported"
		case strings.HasSuffix(format, "json"):
			want = `"file": "results.json"`
			if format == "against-json" {
				want = words
			}
		case strings.HasSuffix(format, "svg"):
			alone, beside = untagged(alone), untagged(beside)
			if want = words; format == "sweep-svg" { // no panel of these campaigns
				want = "imported: their4xq"
			}
		}
		if !strings.HasPrefix(format, "differences") { // of several campaigns
			require.Contains(t, alone, want, format)
		}
		require.Contains(t, beside, want, format)
	}
}

// untagged is the text of a drawing, whose headings are broken into lines.
func untagged(svg string) string {
	var b strings.Builder
	for _, part := range strings.Split(svg, "<") {
		_, text, _ := strings.Cut(part, ">")
		b.WriteString(" " + text)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// What is accepted is, written again, accepted again.
func FuzzReadImport(f *testing.F) {
	// A whole export as a seed would take seconds each time: its intervals are made again.
	whole := exported(f, nil)
	f.Add([]byte(whole[:len(whole)/2]))
	f.Add([]byte(exported(f, func(ds *report.Dataset) { ds.Runs[0].Trials = nil })))
	f.Add([]byte(exported(f, func(ds *report.Dataset) { ds.Runs[0].Imported = anImport() })))
	f.Fuzz(func(t *testing.T, b []byte) {
		ds, err := report.ReadImport(b)
		if err != nil {
			return
		}
		var again, third bytes.Buffer
		require.NoError(t, report.Analyse(ds, report.Options{Bootstrap: true}).WriteJSON(&again))
		ds, err = report.ReadImport(again.Bytes())
		require.NoError(t, err)
		require.NoError(t, report.Analyse(ds, report.Options{Bootstrap: true}).WriteJSON(&third))
		require.Equal(t, again.String(), third.String())
	})
}
