package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/orchestrator/store/synthetic"
)

func reportsOf(c *clients) linktrialv1connect.ReportServiceClient {
	return linktrialv1connect.NewReportServiceClient(c.http, c.base, connect.WithGRPC())
}

// Words of a director are kept with the campaign, are in its reports and its export, and go
// with that to another orchestrator, which shows them as they are.
func TestReportWords(t *testing.T) {
	c, _, _ := withResults(t, synthetic.Shape{ID: "theirs7k", Runs: 2, Iterations: 6, Treatments: 3, Samples: 1})
	ctx, reports := t.Context(), reportsOf(c)
	file := func(c *clients, format string, id string) string {
		res, err := c.results(ctx, &linktrialv1.ResultsRequest{RunId: id, Format: format})
		require.NoError(t, err)
		return string(res.Content)
	}
	before := map[string]string{}
	for _, format := range []string{"report", "json", "csv", "latex", "markdown"} {
		before[format] = file(c, format, "theirs7k")
	}
	got, err := reports.GetWords(ctx, req(&linktrialv1.GetWordsRequest{CampaignId: "theirs"}))
	require.NoError(t, err)
	require.Equal(t, "theirs7k", got.Msg.CampaignId)
	require.Nil(t, got.Msg.Words)
	require.Len(t, got.Msg.Chapters, len(report.Chapters))

	set := func(m *linktrialv1.SetWordsRequest) (*linktrialv1.ReportWords, error) {
		res, err := reports.SetWords(ctx, req(m))
		if err != nil {
			return nil, err
		}
		return res.Msg.Words, nil
	}
	const hostile = `</blockquote><script>alert(1)</script> =1+1 \input{x}`
	words, err := set(&linktrialv1.SetWordsRequest{CampaignId: "theirs", Title: " A day ", Author: "Ada Meyer", Summary: hostile + "\r\n\r\nSecond.", Remarks: map[string]string{"results": "Rain.", "method": " "}, By: "ada"})
	require.NoError(t, err)
	require.EqualValues(t, 1, words.Version)
	require.Equal(t, []string{"A day", hostile + "\n\nSecond.", "ada"}, []string{words.Title, words.Summary, words.By})
	require.Equal(t, map[string]string{"results": "Rain."}, words.Remarks)
	page := file(c, "report", "theirs7k")
	for _, part := range []string{"<h1>A day</h1>", "By Ada Meyer", "Summary by Ada Meyer", "Words of Ada Meyer, not computed; written by ada ", "&lt;script&gt;alert(1)", "<p>Second.</p>", "Remarks by Ada Meyer", "<p>Rain.</p>"} {
		require.True(t, strings.Contains(page, part), part)
	}
	require.False(t, strings.Contains(page, "<script"))
	require.Equal(t, page, file(c, "report", "theirs7k"))
	for _, format := range []string{"csv", "latex", "markdown"} {
		require.True(t, before[format] == file(c, format, "theirs7k"), format)
	}

	// What is wrong changes nothing.
	long := strings.Repeat("中", report.MaxWordsSummary+1)
	for _, x := range []struct {
		m    *linktrialv1.SetWordsRequest
		code connect.Code
		want string
	}{
		{&linktrialv1.SetWordsRequest{CampaignId: "theirs7k", Title: "x", By: "bob"}, connect.CodeAborted, "its words are in version 1, saved by ada "},
		{&linktrialv1.SetWordsRequest{CampaignId: "theirs7k", Version: 2}, connect.CodeAborted, "version 2 was edited"},
		{&linktrialv1.SetWordsRequest{CampaignId: "theirs7k", Version: -1}, connect.CodeInvalidArgument, "expected 0 or more"},
		{&linktrialv1.SetWordsRequest{CampaignId: "theirs7k", Version: 1, Summary: long}, connect.CodeInvalidArgument, "summary: 10001 characters, expected at most 10000"},
		{&linktrialv1.SetWordsRequest{CampaignId: "theirs7k", Version: 1, Remarks: map[string]string{"result": "x"}}, connect.CodeInvalidArgument, `did you mean "results"?`},
		{&linktrialv1.SetWordsRequest{CampaignId: "theirs7k", Version: 1, Title: "a\nb"}, connect.CodeInvalidArgument, "title has the control character U+000A"},
		{&linktrialv1.SetWordsRequest{CampaignId: "theirs7k", Version: 1, Summary: "\x1b[2J"}, connect.CodeInvalidArgument, "summary has the control character U+001B"},
		{&linktrialv1.SetWordsRequest{CampaignId: "theirs7k", Version: 1, Summary: strings.Repeat("x", 40_001)}, connect.CodeInvalidArgument, "summary has 40001 bytes, expected at most 40000"},
		{&linktrialv1.SetWordsRequest{CampaignId: "theirs7k-1", Version: 1}, connect.CodeInvalidArgument, "theirs7k-1 is a run: words are of the whole campaign theirs7k"},
		{&linktrialv1.SetWordsRequest{CampaignId: "nosuch"}, connect.CodeNotFound, "nosuch"},
		{&linktrialv1.SetWordsRequest{}, connect.CodeInvalidArgument, "expected the identity of a campaign"},
	} {
		_, err := set(x.m)
		fails(t, err, x.code, x.want)
	}
	require.Equal(t, page, file(c, "report", "theirs7k"))

	importedWords(t, file(c, "json", "theirs7k"))

	_, err = set(&linktrialv1.SetWordsRequest{CampaignId: "theirs7k", Version: 1})
	require.NoError(t, err)
	for format, want := range before {
		require.True(t, want == file(c, format, "theirs7k"), "%s is as it was before there were words", format)
	}
}

// importedWords imports the export of a campaign with words.
func importedWords(t *testing.T, export string) {
	t.Helper()
	ours, results, _ := withResults(t)
	reports := reportsOf(ours)
	_, err := results.ImportCampaign(t.Context(), req(&linktrialv1.ImportCampaignRequest{Content: []byte(export), FileName: "results.json", By: "bob", Origin: "company B"}))
	require.NoError(t, err)
	got, err := reports.GetWords(t.Context(), req(&linktrialv1.GetWordsRequest{CampaignId: "theirs7k"}))
	require.NoError(t, err)
	require.True(t, got.Msg.Imported)
	require.Equal(t, "Ada Meyer", got.Msg.Words.Author)
	require.Zero(t, got.Msg.Words.Version)
	_, err = reports.SetWords(t.Context(), req(&linktrialv1.SetWordsRequest{CampaignId: "theirs7k", Title: "mine"}))
	fails(t, err, connect.CodeFailedPrecondition, "campaign theirs7k was imported: the words of its report are those of the orchestrator that measured it")
	res, err := ours.results(t.Context(), &linktrialv1.ResultsRequest{RunId: "theirs7k", Format: "report"})
	require.NoError(t, err)
	require.True(t, strings.Contains(string(res.Content), "they came with the campaign, which was imported from results.json of company B by bob"))
}

// Directors write words, who may see results reads them; they are in the name of who is logged
// in, and the audit log has who wrote which.
func TestWordsNeedADirector(t *testing.T) {
	url := storetest.URL(t)
	st, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	storetest.AddRun(t, st, "wordy", storetest.Sheet(4))
	st.Close()
	s := serveAll(t, url, t.TempDir(), func(c *server.Config) { c.Login = true })
	setup, err := os.ReadFile(filepath.Join(s.data, access.SetupFile))
	require.NoError(t, err)
	people := linktrialv1connect.NewAccessServiceClient(s.http, s.base, connect.WithGRPC())
	const password = "correct horse battery"
	token := strings.TrimSpace(string(setup))
	tokens := map[string]string{}
	for _, user := range []struct {
		name string
		role linktrialv1.Role
	}{{"olga", linktrialv1.Role_ROLE_ADMIN}, {"dirk", linktrialv1.Role_ROLE_DIRECTOR}, {"vera", linktrialv1.Role_ROLE_VIEWER}} {
		add := connect.NewRequest(&linktrialv1.AddUserRequest{Name: user.name, Role: user.role, Password: password})
		add.Header().Set("Authorization", "Bearer "+token)
		_, err := people.AddUser(t.Context(), add)
		require.NoError(t, err)
		in, err := people.Login(t.Context(), connect.NewRequest(&linktrialv1.LoginRequest{User: user.name, Password: password, TokenName: "test"}))
		require.NoError(t, err)
		tokens[user.name] = in.Msg.Token
		token = tokens["olga"]
	}
	call := func(user, method, body string) (int, string) {
		return post(t, s.base, "/linktrial.v1.ReportService/"+method, tokens[user], "application/json", []byte(body))
	}
	status, _ := call("", "GetWords", `{"campaignId": "wordy"}`)
	require.Equal(t, http.StatusUnauthorized, status)
	status, text := call("vera", "SetWords", `{"campaignId": "wordy", "title": "x"}`)
	require.Equal(t, http.StatusForbidden, status, text)
	status, text = call("dirk", "SetWords", `{"campaignId": "wordy", "title": "A day", "by": "somebody else"}`)
	require.Equal(t, http.StatusOK, status, text)
	status, text = call("vera", "GetWords", `{"campaignId": "wordy"}`)
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, `"title":"A day"`)
	require.Contains(t, text, `"by":"dirk`)
	require.NotContains(t, text, "somebody else")
	status, text = post(t, s.base, "/linktrial.v1.AccessService/ListAudit", tokens["olga"], "application/json", []byte("{}"))
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "SetWords")
	require.Contains(t, text, "A day")
}
