//go:build kernels

package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMachineThatDies: each end without a result is an error that says which,
// with the end of the console.
func TestMachineThatDies(t *testing.T) {
	cache, err := DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	k, err := FindKernel(t.Context(), cache, "6.12")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, folder := range map[string]string{"silent": "./testdata/silent", "guest": "../guest"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, name), folder)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	first := func(name string) []File {
		return []File{{Name: "/init", From: filepath.Join(bin, name), Executable: true}}
	}
	for name, c := range map[string]struct {
		cfg  Config
		want []string
	}{
		"panic":          {Config{}, []string{"ended without a result", "Kernel panic"}},
		"hang":           {Config{Files: first("silent"), Silence: 4 * time.Second}, []string{"has said nothing for "}},
		"takes too long": {Config{Files: first("silent"), Limit: 5 * time.Second}, []string{"has not ended within 5s"}},
		"no tests":       {Config{Files: first("guest")}, []string{"ended without a result", "guest: start the tests"}},
		"no memory":      {Config{Files: first("guest"), MemoryBytes: 1 << 20}, []string{"kernel linux-image-6.12"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := c.cfg
			cfg.Kernel, cfg.Dir = k, t.TempDir()
			if cfg.MemoryBytes == 0 {
				cfg.MemoryBytes = 256 << 20
			}
			if cfg.Limit == 0 {
				cfg.Limit = 5 * time.Minute
			}
			if cfg.Silence == 0 {
				cfg.Silence = 2 * time.Minute
			}
			r, err := Boot(t.Context(), cfg)
			if err == nil {
				t.Fatalf("no error, but %+v", r)
			}
			t.Log(err)
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v; expected %q in it", err, w)
				}
			}
			if exists(filepath.Join(cfg.Dir, "archive")) {
				t.Error("the archive was left behind")
			}
		})
	}
}
