package trial

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
)

// worded is an orchestrator with a campaign whose report has words.
type worded struct {
	reporting
	linktrialv1connect.UnimplementedReportServiceHandler
	now *linktrialv1.ReportWords
	set *linktrialv1.SetWordsRequest
	err error
}

func (w *worded) GetWords(_ context.Context, q *connect.Request[linktrialv1.GetWordsRequest]) (*connect.Response[linktrialv1.GetWordsResponse], error) {
	return connect.NewResponse(&linktrialv1.GetWordsResponse{CampaignId: q.Msg.CampaignId + "xk2p", Words: w.now}), nil
}

func (w *worded) SetWords(_ context.Context, q *connect.Request[linktrialv1.SetWordsRequest]) (*connect.Response[linktrialv1.SetWordsResponse], error) {
	w.set = q.Msg
	if w.err != nil {
		return nil, w.err
	}
	w.now = &linktrialv1.ReportWords{Version: q.Msg.Version + 1, Title: q.Msg.Title, Author: q.Msg.Author, Summary: q.Msg.Summary, Remarks: q.Msg.Remarks, By: q.Msg.By, At: timestamppb.New(time.Unix(0, 0))}
	return connect.NewResponse(&linktrialv1.SetWordsResponse{Words: w.now}), nil
}

func (w *worded) words(t *testing.T, args ...string) (string, error) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewOperatorServiceHandler(&w.reporting))
	mux.Handle(linktrialv1connect.NewReportServiceHandler(w))
	return runAgainst(t, mux, newReport, append([]string{"words"}, args...)...)
}

// Flags change their texts alone.
func TestReportWords(t *testing.T) {
	w := &worded{now: &linktrialv1.ReportWords{Version: 3, Title: "old", Author: "Ada", Remarks: map[string]string{"method": "m", "results": "r"}}}
	out, err := w.words(t, "m4t7", "--title", "new", "--summary", "one\n\ntwo", "--remark", "results=a=b", "--remark", "method=", "--by", "bob")
	require.NoError(t, err)
	require.Equal(t, "The words of campaign m4t7xk2p are saved, version 4. Its report has them: linktrial report m4t7xk2p\n", out)
	require.Equal(t, "m4t7xk2p", w.set.CampaignId)
	require.EqualValues(t, 3, w.set.Version)
	require.Equal(t, []string{"new", "Ada", "one\n\ntwo", "bob"}, []string{w.set.Title, w.set.Author, w.set.Summary, w.set.By})
	require.Equal(t, map[string]string{"results": "a=b", "method": ""}, w.set.Remarks)

	out, err = w.words(t, "m4t7", "--remove")
	require.NoError(t, err)
	require.Contains(t, out, "are removed, version 5")
	require.Empty(t, w.set.Title+w.set.Author+w.set.Summary)
	require.Empty(t, w.set.Remarks)
}

// What is shown can be edited and given back.
func TestReportWordsAsFile(t *testing.T) {
	w := &worded{now: &linktrialv1.ReportWords{Version: 3, Title: "t: \"x\"", Author: "Ada", Summary: "one\n\ntwo", Remarks: map[string]string{"results": "r"}, By: "ada\x1b", At: timestamppb.New(time.Unix(0, 0))}}
	shown, err := w.words(t, "m4t7")
	require.NoError(t, err)
	require.Nil(t, w.set)
	require.NotContains(t, shown, "\x1b")
	again, err := w.words(t, "m4t7", "--show")
	require.NoError(t, err)
	require.Equal(t, shown, again)
	file := filepath.Join(t.TempDir(), "words.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(shown, "Ada", "Bea", 1)), 0o600))
	_, err = w.words(t, "m4t7", "--file", file)
	require.NoError(t, err)
	require.EqualValues(t, 3, w.set.Version)
	require.Equal(t, []string{"t: \"x\"", "Bea", "one\n\ntwo"}, []string{w.set.Title, w.set.Author, w.set.Summary})
	require.Equal(t, map[string]string{"results": "r"}, w.set.Remarks)

	w.err = connect.NewError(connect.CodeAborted, errors.New("it was changed in between; read them again"))
	_, err = w.words(t, "m4t7", "--file", file)
	require.ErrorContains(t, err, "it was changed in between; read them again with --show, or take 'version' out of "+file)

	none := &worded{}
	shown, err = none.words(t, "m4t7", "--show")
	require.NoError(t, err)
	require.Contains(t, shown, "# There are none yet.\n")
	require.Contains(t, shown, "version: 0\ntitle: \"\"\n")
}

// What is wrong is refused before an orchestrator is asked.
func TestReportWordsAreRefused(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("titel: x\nremarks: {result: y}\n"), 0o600))
	for want, args := range map[string][]string{
		"--remark results: expected CHAPTER=TEXT, found no '='":                              {"--remark", "results"},
		`--remark: remark on result: a report has no such chapter (did you mean "results"?)`: {"--remark", "result=x"},
		"remark on nothing: a report has no such chapter":                                    {"--remark", "nothing="},
		"--remark results: given twice":                                                      {"--remark", "results=x", "--remark", "results=y"},
		"bad.yaml:1:1: unknown key \"titel\"":                                                {"--file", bad},
		"bad.yaml:2:11: unknown key \"result\"":                                              {"--file", bad},
		"no such file":                                                                       {"--file", bad + "x"},
		"if any flags in the group [title file] are set none of the others can be":           {"--file", bad, "--title", "x"},
		"if any flags in the group [show remove file] are set none of the others can":        {"--show", "--remove"},
	} {
		w := &worded{}
		_, err := w.words(t, append([]string{"m4t7"}, args...)...)
		require.ErrorContains(t, err, want)
		require.Nil(t, w.set)
	}
	_, err := (&worded{}).words(t)
	require.ErrorContains(t, err, "accepts 1 arg(s), received 0")
}
