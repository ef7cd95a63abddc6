package trial

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/yamldoc"
)

// explainer answers as an orchestrator whose catalogue has other radios.
type explainer struct {
	linktrialv1connect.UnimplementedOperatorServiceHandler
	answer *linktrialv1.ExplainPlanResponse
	err    error
	asked  int
}

func (e *explainer) ExplainPlan(context.Context, *connect.Request[linktrialv1.ExplainPlanRequest]) (*connect.Response[linktrialv1.ExplainPlanResponse], error) {
	e.asked++
	if e.err != nil {
		return nil, e.err
	}
	return connect.NewResponse(e.answer), nil
}

func (e *explainer) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewOperatorServiceHandler(e))
	srv := httptest.NewUnstartedServer(mux)
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	srv.Config.Protocols = &p
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

// A plan that names a radio which only the orchestrator has is checked there; where it
// cannot be asked, the message says where was looked.
func TestPlanOnTheOrchestratorsRadio(t *testing.T) {
	const text = "name: x\nradio: own-hf\ntopology: vip-lot\nsize: 64 KiB\ntreatments:\n  - {name: a, protocol: tcp}\niterations: 1\nseed: 1\n"
	file := filepath.Join(t.TempDir(), "x.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	unknown := &linktrialv1.Problem{File: "x.yaml", Line: 2, Column: 8, Message: `radio: unknown radio "own-hf"; there is prc`}
	for name, c := range map[string]struct {
		answer   *linktrialv1.ExplainPlanResponse
		err      error
		problems string // empty: none
		by       string
	}{
		"known there":   {&linktrialv1.ExplainPlanResponse{}, nil, "", "by the catalogue of the orchestrator http"},
		"nor there":     {&linktrialv1.ExplainPlanResponse{Problems: []*linktrialv1.Problem{unknown}}, nil, "there is prc", "linktrial serve --catalog"},
		"not logged in": {nil, connect.NewError(connect.CodeUnauthenticated, errors.New("log in first")), `unknown radio "own-hf"`, "no folder was named with --catalog"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &explainer{answer: c.answer, err: c.err}
			s := &setting.Settings{Orchestrator: e.serve(t), Data: t.TempDir()}
			_, by, err := compileAnywhere(t.Context(), s, file)
			require.Equal(t, 1, e.asked)
			require.Contains(t, by, c.by)
			if c.problems == "" {
				require.NoError(t, err)
				return
			}
			var ps yamldoc.Problems
			require.ErrorAs(t, err, &ps)
			require.ErrorContains(t, err, c.problems)
		})
	}
	// What is no sheet is not taken for one.
	e := &explainer{answer: &linktrialv1.ExplainPlanResponse{Sheets: []*linktrialv1.SheetSummary{{Sheet: []byte("{")}}}}
	_, _, err := compileAnywhere(t.Context(), &setting.Settings{Orchestrator: e.serve(t), Data: t.TempDir()}, file)
	require.ErrorContains(t, err, "sheet of the orchestrator")

	// Other faults need no orchestrator.
	e = &explainer{}
	require.NoError(t, os.WriteFile(file, []byte("name: x\n"), 0o600))
	_, by, err := compileAnywhere(t.Context(), &setting.Settings{Orchestrator: e.serve(t), Data: t.TempDir()}, file)
	require.Error(t, err)
	require.Empty(t, by)
	require.Zero(t, e.asked)
}
