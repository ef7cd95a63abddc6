package trial

import (
	"bytes"
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
)

// libraryServer has plans by their names.
type libraryServer struct {
	linktrialv1connect.UnimplementedLibraryServiceHandler
	plans []string
	asked int
}

func (l *libraryServer) GetPlan(_ context.Context, req *connect.Request[linktrialv1.GetPlanRequest]) (*connect.Response[linktrialv1.GetPlanResponse], error) {
	l.asked++
	for _, p := range l.plans {
		if p == req.Msg.Name {
			return connect.NewResponse(&linktrialv1.GetPlanResponse{Text: []byte("plan " + p)}), nil
		}
	}
	return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no such plan"))
}

func (l *libraryServer) ListPlans(context.Context, *connect.Request[linktrialv1.ListPlansRequest]) (*connect.Response[linktrialv1.ListPlansResponse], error) {
	res := &linktrialv1.ListPlansResponse{}
	for _, p := range l.plans {
		res.Plans = append(res.Plans, &linktrialv1.SavedPlan{Name: p})
	}
	return connect.NewResponse(res), nil
}

// plainServer serves without TLS what the command line's client asks.
func plainServer(t *testing.T, mux *http.ServeMux) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(mux)
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	srv.Config.Protocols = &p
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestPlanByName(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("plans", 0o700))
	for _, name := range []string{"both", "alone", "evening.yaml", filepath.Join("plans", "evening")} {
		require.NoError(t, os.WriteFile(name, []byte("file "+name), 0o600))
	}
	l := &libraryServer{plans: []string{"both", "evening", "evening-hf", "plans", "quickstart"}}
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewLibraryServiceHandler(l))
	s := &setting.Settings{Orchestrator: plainServer(t, mux)}
	for arg, want := range map[string]struct {
		text, said string
		asked      int
	}{
		"evening":       {"plan evening", "", 1},
		"evening.yaml":  {"file evening.yaml", "", 0},
		"plans/evening": {"file plans/evening", "", 0},
		"both":          {"file both", "both is a file here and a plan at the orchestrator: this is the file", 1},
		"alone":         {"file alone", "", 1},
		"plans":         {"plan plans", "", 1}, // a folder is no plan
	} {
		l.asked = 0
		var said bytes.Buffer
		text, name, err := readNamed(t.Context(), s, arg, &said)
		require.NoError(t, err, arg)
		require.Equal(t, want.text, string(text))
		require.Equal(t, arg, name)
		require.Equal(t, want.asked, l.asked, arg)
		if want.said == "" {
			require.Empty(t, said.String(), arg)
		} else {
			require.Contains(t, said.String(), want.said)
		}
	}
	for arg, want := range map[string]string{
		"evning":      "there is no file evning here, and no plan of that name at the orchestrator; near are: evening",
		"Evening":     "near are: evening, evening-hf",
		"morning":     "which has: both, evening, evening-hf, plans, quickstart",
		"nosuch.yaml": "nosuch.yaml: no such file",
	} {
		_, _, err := readNamed(t.Context(), s, arg, os.Stderr)
		require.ErrorContains(t, err, want)
	}
	none := &setting.Settings{Orchestrator: "http://127.0.0.1:1"}
	_, _, err := readNamed(t.Context(), none, "evening", os.Stderr)
	require.ErrorContains(t, err, "there is no file evening here, and plans that are named are at an orchestrator: no orchestrator answers at http://127.0.0.1:1")
	text, _, err := readNamed(t.Context(), none, "alone", os.Stderr)
	require.NoError(t, err, "a file needs no orchestrator")
	require.Equal(t, "file alone", string(text))
}
