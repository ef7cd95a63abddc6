package server_test

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/store/synthetic"
)

// A campaign that one orchestrator exports and another one imports has the same tables,
// statistics and files there, says that it was imported, and can be compared and removed.
func TestImport(t *testing.T) {
	theirs, _, conn := withResults(t, synthetic.Shape{ID: "their4xq", Runs: 2, Iterations: 6, Treatments: 3, Samples: 1})
	_, err := conn.Exec(t.Context(), `INSERT INTO attempt_marks (id, run_id, trial, attempt, invalid, reason) SELECT trial || '.' || attempt, run_id, trial, attempt, true, 'rain' FROM attempts WHERE run_id = 'their4xq-1' AND trial % 10 = 3`)
	require.NoError(t, err)
	ours, results, _ := withResults(t, synthetic.Shape{ID: "ours7k2p", Runs: 2, Iterations: 6, Treatments: 3, Samples: 1})
	file := func(c *clients, format string, ids ...string) string {
		t.Helper()
		res, err := c.results(t.Context(), &linktrialv1.ResultsRequest{RunId: ids[0], MoreIds: ids[1:], Format: format})
		require.NoError(t, err, format)
		return string(res.Content)
	}
	whole := file(theirs, "json", "their4xq")
	add := func(text string) error {
		_, err := results.ImportCampaign(t.Context(), req(&linktrialv1.ImportCampaignRequest{Content: []byte(text), FileName: "../their/results.json", By: "ada", Origin: " company B "}))
		return err
	}

	// Nothing of what is refused is stored.
	fails(t, add(whole[:len(whole)/2]), connect.CodeInvalidArgument, "results.json is not imported", "it was cut")
	fails(t, add(strings.Replace(whole, `"verified": true`, `"verified": false`, 1)), connect.CodeInvalidArgument, "tables[0] (their4xq-1)", "but the attempts in the file give")
	fails(t, add(file(theirs, "json", "their4xq-1")[:1000]), connect.CodeInvalidArgument)
	fails(t, add(file(ours, "json", "ours7k2p")), connect.CodeAlreadyExists, "campaign ours7k2p is here already: this orchestrator measured it itself")
	none, err := results.ListImports(t.Context(), req(&linktrialv1.ListImportsRequest{}))
	require.NoError(t, err)
	require.Empty(t, none.Msg.Imports)

	require.NoError(t, add(whole))
	fails(t, add(whole), connect.CodeAlreadyExists, "their4xq", "it was imported from results.json", "remove that import first")
	all, err := results.ListImports(t.Context(), req(&linktrialv1.ListImportsRequest{}))
	require.NoError(t, err)
	require.Len(t, all.Msg.Imports, 1)
	x := all.Msg.Imports[0]
	require.Equal(t, []string{"their4xq", "results.json", "ada", "company B"}, []string{x.Imported.CampaignId, x.Imported.FileName, x.Imported.By, x.Imported.Origin})
	require.EqualValues(t, 2, x.Runs)
	require.Len(t, x.Treatments, 3)

	// The values are the original's; every file says where they come from.
	for _, format := range []string{"csv", "trials-csv"} {
		rows := func(c *clients) [][]string {
			all, err := csv.NewReader(strings.NewReader(file(c, format, "their4xq"))).ReadAll()
			require.NoError(t, err, format)
			return all
		}
		want := rows(theirs)
		at := slices.Index(want[0], "imported")
		for _, row := range want[1:] {
			row[at] = "imported from results.json of company B by ada, " + unit.Moment(x.Imported.At.AsTime())
		}
		require.Equal(t, want, rows(ours), format)
	}
	for _, format := range []string{"table", "markdown", "latex", "json", "svg", "cdf-svg"} {
		require.Contains(t, strings.Join(strings.Fields(file(ours, format, "their4xq")), " "), "imported", format)
		require.NotContains(t, file(theirs, format, "their4xq"), "imported from", format)
	}
	theirTables, _ := tablesOf(t, theirs, "their4xq")
	ourTables, _ := tablesOf(t, ours, "their4xq")
	for i := range ourTables {
		require.Equal(t, x.Imported.Sha256, ourTables[i].Imported.SHA256)
		ourTables[i].Imported = nil
	}
	require.Equal(t, theirTables, ourTables)
	require.Contains(t, file(ours, "differences", "ours7k2p", "their4xq"), "their4xq (imported) against ours7k2p")
	fails(t, add(file(ours, "json", "their4xq")), connect.CodeInvalidArgument, "import that file")
	importedOnPages(t, theirs, ours, results)

	// It has no commands, and no data that the file does not have.
	_, err = ours.operator.AbortCampaign(t.Context(), req(&linktrialv1.AbortCampaignRequest{CampaignId: "their4xq", Reason: "rain"}))
	require.Error(t, err)
	for _, format := range []string{"samples-csv", "channels-csv", "readings-csv", "sequence-svg"} {
		_, err := ours.results(t.Context(), &linktrialv1.ResultsRequest{RunId: "their4xq", Format: format})
		fails(t, err, connect.CodeFailedPrecondition, "campaign their4xq was imported")
	}
	formats := func(ids ...string) []string { return formatNames(t, results, ids...) }
	require.Subset(t, formats("ours7k2p"), []string{"csv", "samples-csv", "channels-csv", "readings-csv", "sequence-svg"})
	require.NotContains(t, formats("ours7k2p"), "differences-csv")
	both := formats("ours7k2p", "their4xq")
	require.Subset(t, both, []string{"csv", "differences", "differences-csv", "differences-markdown"})
	require.NotSubset(t, both, []string{"samples-csv"})
	for _, f := range formats("their4xq") {
		_, err := ours.results(t.Context(), &linktrialv1.ResultsRequest{RunId: "their4xq", Format: f})
		require.True(t, err == nil || render.Find(f).Of == render.OfProbes && connect.CodeOf(err) == connect.CodeNotFound, "%s: %v", f, err)
	}
	_, err = results.GetAttempt(t.Context(), req(&linktrialv1.GetAttemptRequest{RunId: "their4xq-1", Trial: 1}))
	fails(t, err, connect.CodeFailedPrecondition, "campaign their4xq was imported", "no journals")
	_, err = results.Series(t.Context(), req(&linktrialv1.SeriesRequest{RunId: "their4xq-1", Trial: 1}))
	fails(t, err, connect.CodeFailedPrecondition, "campaign their4xq was imported")
	_, err = ours.results(t.Context(), &linktrialv1.ResultsRequest{RunId: "their4xq-9", Format: "csv"})
	fails(t, err, connect.CodeNotFound, "their4xq-9")

	remove := func() error {
		_, err := results.RemoveImport(t.Context(), req(&linktrialv1.RemoveImportRequest{CampaignId: "their4xq"}))
		return err
	}
	require.NoError(t, remove())
	fails(t, remove(), connect.CodeNotFound, "their4xq")
	_, err = ours.results(t.Context(), &linktrialv1.ResultsRequest{RunId: "their4xq", Format: "csv"})
	fails(t, err, connect.CodeNotFound, "their4xq")
	require.NoError(t, add(whole))
}

// What pages ask for of an imported campaign is what they ask for of one's own, and marked.
func importedOnPages(t *testing.T, theirs, ours *clients, results linktrialv1connect.ResultServiceClient) {
	t.Helper()
	original := linktrialv1connect.NewResultServiceClient(theirs.http, theirs.base, connect.WithGRPC())
	got, err := results.Summarize(t.Context(), req(&linktrialv1.SummarizeRequest{Ids: []string{"ours7k2p", "their4xq-2", "their"}, Points: true}))
	require.NoError(t, err)
	want, err := original.Summarize(t.Context(), req(&linktrialv1.SummarizeRequest{Ids: []string{"their4xq"}, Points: true}))
	require.NoError(t, err)
	require.Len(t, got.Msg.Runs, 5, "own ones, one run of theirs, and all of theirs")
	require.Nil(t, got.Msg.Runs[0].Imported)
	require.True(t, got.Msg.Differences[0].Imported)
	require.False(t, got.Msg.Differences[0].ReferenceImported)
	require.Contains(t, strings.Join(got.Msg.Notes, " "), "Campaign their4xq was imported from results.json of company B by ada")
	for i, x := range got.Msg.Runs[3:] {
		require.Equal(t, "company B", x.Imported.Origin)
		require.Equal(t, want.Msg.Runs[i].Run.TrialsEnded, x.Run.TrialsEnded)
		require.GreaterOrEqual(t, x.Run.AttemptsFailed, want.Msg.Runs[i].Run.AttemptsFailed, "files do not tell marked attempts from other invalid ones")
		x.Imported, x.Run, want.Msg.Runs[i].Run = nil, nil, nil
		require.True(t, proto.Equal(want.Msg.Runs[i], x), "%v\n%v", want.Msg.Runs[i], x)
	}
	sweep, err := results.Sweep(t.Context(), req(&linktrialv1.SweepRequest{CampaignId: "their4xq"}))
	require.NoError(t, err)
	require.NotNil(t, sweep.Msg)
}

// formatNames are the formats that there are of some results.
func formatNames(t *testing.T, c linktrialv1connect.ResultServiceClient, ids ...string) (out []string) {
	t.Helper()
	res, err := c.ListFormats(t.Context(), req(&linktrialv1.ListFormatsRequest{Ids: ids}))
	require.NoError(t, err)
	for _, f := range res.Msg.Formats {
		out = append(out, f.Name)
		require.NotEmpty(t, f.Title, f.Name)
		require.NotEmpty(t, f.FileName, f.Name)
	}
	return out
}
