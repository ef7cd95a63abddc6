package enginetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEngineStartsAndLeavesNothing(t *testing.T) {
	var dir string
	t.Run("engine", func(t *testing.T) {
		e := Start(t)
		dir = filepath.Dir(strings.TrimPrefix(e.Host, "unix://"))
		if err := e.Import(t.Context(), "empty:latest", nil, File{Path: "a", Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	})
	if dir == "" {
		t.Skip("no engine")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), dir) {
		t.Error("the engine's mounts are still there")
	}
}
