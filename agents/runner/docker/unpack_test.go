package docker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/agents/runner/docker"
	"linktrial/internal/enginetest"
)

func TestUnpack(t *testing.T) {
	r := newRunner(t, "unpack")
	for _, c := range []struct {
		name, user string
		uid, gid   uint32
		problem    string
	}{
		{"root", "", 0, 0, ""},
		{"user alone", "65534", 65534, 65534, ""},
		{"user and group", "1000:1001", 1000, 1001, ""},
		{"a name", "nobody", 0, 0, `its USER is "nobody", expected numbers such as 65534:65534`},
		{"a group's name", "1:wheel", 0, 0, `its USER is "1:wheel", expected numbers such as 65534:65534`},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes := []string{"LABEL " + docker.LabelProtocol + "=confined"}
			if c.user != "" {
				changes = append(changes, "USER "+c.user)
			}
			const ref = "unpacked:latest"
			if err := engine.Import(t.Context(), ref, changes, manifest("confined", ""), program(confined), enginetest.File{Path: "data/text", Mode: 0o640, Data: []byte("kept")}); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			u, err := r.Unpack(t.Context(), ref, dir)
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("%v, expected %q", err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if u.UID != c.uid || u.GID != c.gid || u.Manifest.Name != "confined" {
				t.Errorf("%+v", u)
			}
			b, err := os.ReadFile(filepath.Join(dir, "data", "text"))
			if err != nil || string(b) != "kept" {
				t.Errorf("%q, %v", b, err)
			}
			i, err := os.Stat(filepath.Join(dir, "program"))
			if err != nil || i.Mode().Perm() != 0o755 || i.Size() != int64(len(confined)) {
				t.Errorf("%v, %v", i, err)
			}
			if _, err := os.Stat(filepath.Join(dir, ".dockerenv")); !os.IsNotExist(err) {
				t.Errorf("the engine's own file: %v", err)
			}
		})
	}
	if _, err := r.Unpack(t.Context(), "none:latest", t.TempDir()); err == nil || !strings.Contains(err.Error(), "image none:latest") {
		t.Errorf("an image that is not there: %v", err)
	}
	if left := containers(t, "unpack"); len(left) > 0 {
		t.Errorf("containers left: %q", left)
	}
}
