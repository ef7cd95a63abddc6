package trial

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
)

// reporting is an orchestrator that makes reports.
type reporting struct {
	linktrialv1connect.UnimplementedOperatorServiceHandler
	campaign string
	runs     []string
	err      error // in the middle of the file
	asked    *linktrialv1.ResultsRequest
}

func (r *reporting) ListRuns(context.Context, *connect.Request[linktrialv1.ListRunsRequest]) (*connect.Response[linktrialv1.ListRunsResponse], error) {
	return connect.NewResponse(&linktrialv1.ListRunsResponse{}), nil
}

func (r *reporting) Results(_ context.Context, q *connect.Request[linktrialv1.ResultsRequest], stream *connect.ServerStream[linktrialv1.ResultsResponse]) error {
	r.asked = q.Msg
	for _, m := range []*linktrialv1.ResultsResponse{{Done: 0.1}, {CampaignId: r.campaign, RunIds: r.runs, FileName: "../report.html", MediaType: "text/html"}, {Content: []byte("<!doctype html>")}} {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return r.err
}

func (r *reporting) report(t *testing.T, args ...string) (string, error) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewOperatorServiceHandler(r))
	return runAgainst(t, mux, newReport, args...)
}

// The ending of the file's name says which kind of document it is.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	for name, format := range map[string]string{"day.html": "report", "DAY.HTML": "report", "day.pdf": "report-pdf"} {
		path := filepath.Join(dir, name)
		r := &reporting{campaign: "c"}
		out, err := r.report(t, "c", "d", "--out", path, "--reference", "haul", "--leave-out", "udt,sctp")
		require.NoError(t, err)
		require.Equal(t, path+"\n", out)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "<!doctype html>", string(content))
		require.Equal(t, format, r.asked.Format)
		require.Equal(t, "c", r.asked.RunId)
		require.Equal(t, []string{"d"}, r.asked.MoreIds)
		require.Equal(t, "haul", r.asked.Reference)
		require.Equal(t, []string{"udt", "sctp"}, r.asked.LeaveOut)
	}
	require.Len(t, names(t, dir), 3)
}

// Without a name, the file has that of what it is of, in the folder in which the command runs.
func TestReportIsNamed(t *testing.T) {
	for _, c := range []struct {
		r    reporting
		args []string
		want string
	}{
		{reporting{campaign: "m4t7xk2p", runs: []string{"m4t7xk2p-1", "m4t7xk2p-2"}}, nil, "report-m4t7xk2p.html"},
		{reporting{campaign: "m4t7xk2p", runs: []string{"m4t7xk2p-1"}}, []string{"m4t7"}, "report-m4t7xk2p.html"},
		{reporting{campaign: "m4t7xk2p", runs: []string{"m4t7xk2p-2"}}, []string{"m4t7xk2p-2"}, "report-m4t7xk2p-2.html"},
		{reporting{campaign: "m4t7xk2p, h8w3rnbz", runs: []string{"m4t7xk2p-1", "h8w3rnbz-1"}}, []string{"m4", "h8"}, "report-m4t7xk2p-h8w3rnbz.html"},
		{reporting{campaign: "a, b, c, d", runs: []string{"a-1"}}, []string{"a", "b", "c", "d"}, "report-a-and-3-more.html"},
		{reporting{campaign: "../../etc/x\n"}, nil, "report-------etc-x-.html"},
	} {
		dir := t.TempDir()
		t.Chdir(dir)
		out, err := c.r.report(t, c.args...)
		require.NoError(t, err)
		require.Equal(t, c.want+"\n", out)
		require.Equal(t, []string{c.want}, names(t, dir))
	}
}

// A file that cannot be whole is not there, and the one that was there before stays.
func TestReportIsWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "r.html")
	require.NoError(t, os.WriteFile(old, []byte("old"), 0o600))
	r := &reporting{campaign: "c", err: connect.NewError(connect.CodeUnavailable, errors.New("the orchestrator is stopping"))}
	out, err := r.report(t, "--out", old)
	require.ErrorContains(t, err, "the orchestrator is stopping")
	require.Empty(t, out)
	content, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "old", string(content))
	require.Equal(t, []string{"r.html"}, names(t, dir))
}

// What cannot be written is refused before an orchestrator is asked.
func TestReportIsRefused(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder.html")
	require.NoError(t, os.Mkdir(folder, 0o700))
	for out, want := range map[string]string{
		"report.docx":                            `--out "report.docx": expected a file whose name ends in .html or .pdf`,
		"report":                                 `--out "report": expected a file whose name ends in .html or .pdf`,
		"-":                                      `--out "-": expected a file whose name ends in .html or .pdf`,
		folder:                                   "is a folder, expected a file",
		filepath.Join(dir, "no", "x.html"):       "no such file or directory",
		filepath.Join("report_test.go", "x.pdf"): "report_test.go is no folder",
	} {
		r := &reporting{campaign: "c"}
		_, err := r.report(t, "--out", out)
		require.ErrorContains(t, err, want)
		require.Nil(t, r.asked)
	}
}
