package docker_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"linktrial/agents/runner"
	"linktrial/agents/runner/docker"
	"linktrial/agents/trust"
	"linktrial/internal/enginetest"
)

// What an image's name stands for now is what is compared with a run sheet,
// whether the engine's images are the drivers or a folder's manifests name them.
func TestPin(t *testing.T) {
	images := newRunner(t, "pin")
	dir := t.TempDir()
	put := func(more string) {
		t.Helper()
		m := manifest("moving", "image: moving:latest\n"+more)
		if err := os.MkdirAll(filepath.Join(dir, "moving"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "moving", m.Path), m.Data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := engine.Import(t.Context(), "moving:latest", []string{"LABEL " + docker.LabelProtocol + "=moving"}, m, program(confined)); err != nil {
			t.Fatal(err)
		}
	}
	importImage(t, "moving:latest", "moving", manifest("moving", ""), enginetest.File{Path: "program", Mode: 0o755, Data: confined})
	put("")
	either, err := docker.NewMixed(runner.New(runner.Config{Dir: dir}), docker.Config{Agent: "pin-either", Host: engine.Host, Holder: []string{holder}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := either.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for name, r := range map[string]interface {
		trust.Digester
		trust.Pinner
	}{"images": images, "either": either} {
		t.Run(name, func(t *testing.T) {
			if err := r.Pin(t.Context()); err != nil {
				t.Fatal(err)
			}
			before, err := r.Digest(t.Context(), "moving")
			if err != nil {
				t.Fatal(err)
			}
			put("kernel: of " + name + "\n")
			if now, err := r.Digest(t.Context(), "moving"); err != nil || now != before {
				t.Errorf("without a look: %s, %v", now, err)
			}
			if err := r.Pin(t.Context()); err != nil {
				t.Fatal(err)
			}
			if now, err := r.Digest(t.Context(), "moving"); err != nil || now == before {
				t.Errorf("after a look the digest is still %s, %v", now, err)
			}
		})
	}
	if left := append(containers(t, "pin"), containers(t, "pin-either")...); len(left) > 0 {
		t.Errorf("a look started %v", left)
	}
}
