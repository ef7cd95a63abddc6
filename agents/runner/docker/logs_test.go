package docker_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"linktrial/agents/runner/docker"
	"linktrial/protocols/contract"
)

// TestLogsOfTransfers: what drivers in containers write is kept where the agent says,
// of a prepared container too, and nothing else is left of their folders.
func TestLogsOfTransfers(t *testing.T) {
	if engine == nil {
		t.Skip(reason)
	}
	state, keep := t.TempDir(), t.TempDir()
	// Left by an agent that crashed.
	stale := filepath.Join(state, "container-logs", "1")
	if err := os.MkdirAll(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := docker.New(t.Context(), docker.Config{Agent: "keep", StateDir: state, Host: engine.Host, Holder: []string{holder}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		left, err := os.ReadDir(filepath.Dir(stale))
		if err != nil || len(left) > 0 {
			t.Errorf("folders of containers are left: %v, %v", left, err)
		}
	}()
	importPlain(t)
	port := freePort(t)
	wanted := func(role contract.Role, transfer string) *contract.Parameters {
		p := parameters(role, port)
		p.LogFolder, p.Options["fault"] = keep, "log"
		if transfer != "" {
			p.Transfer.ID = transfer
		}
		return p
	}
	server, err := r.Start(t.Context(), "plain", wanted(contract.RoleServer, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go events(t, server, func(e *contract.Event) {
		if e.Event == contract.KindReady {
			close(ready)
		}
	})
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("the server is not ready")
	}
	first, second := "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a", "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"
	for _, transfer := range []string{first, second} {
		release := func() {}
		if transfer == second {
			release = r.Prepare(t.Context(), "plain", transfer)
		}
		q := wanted(contract.RoleClient, transfer)
		p, err := r.Start(t.Context(), "plain", q, given(q))
		release()
		if err != nil {
			t.Fatal(err)
		}
		events(t, p, func(e *contract.Event) {
			if e.Event == contract.KindError {
				t.Errorf("%s: %s", e.Code, e.Message)
			}
		})
		if exit := await(t, p); exit.Code != contract.ExitOK {
			t.Errorf("exit %+v, log %s", exit, p.Log())
		}
		expectLog(t, keep, transfer, contract.RoleClient)
	}
	server.Terminate()
	await(t, server)
	for _, transfer := range []string{first, second} {
		expectLog(t, keep, transfer, contract.RoleServer)
	}
}

func expectLog(t *testing.T, folder, transfer string, role contract.Role) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, transfer+"."+string(role)+".log"))
	if err != nil || string(b) != string(role)+"\n" {
		t.Errorf("log of the %s: %q, %v", role, b, err)
	}
}
