//go:build kernels

package inside

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/internal/confine"
)

// asDriver in the environment makes this program the confined one of TestConfinement: the
// names of a file that it may read, and of one that it may not.
const asDriver = "LINKTRIAL_CONFINED"

// TestConfinement shows that a driver process that an agent starts cannot read what every
// user of the machine may read, because of the kernel's Landlock alone.
func TestConfinement(t *testing.T) {
	if files := os.Getenv(asDriver); files != "" {
		confined(t, strings.Split(files, ":"))
		return
	}
	try(t, "confinement", "a driver process", func(t *testing.T) ([]string, error) {
		dir := t.TempDir()
		for d := dir; d != os.TempDir(); d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				return nil, err
			}
		}
		folder, secret := filepath.Join(dir, "driver"), filepath.Join(dir, "secret")
		own := filepath.Join(folder, "own")
		program, err := os.ReadFile("/proc/self/exe")
		err = errors.Join(err, os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "program"), program, 0o755),
			os.WriteFile(own, []byte("own"), 0o644), os.WriteFile(secret, []byte("secret"), 0o644))
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(filepath.Join(folder, "program"), "-test.run=^TestConfinement$")
		cmd.Env = append(os.Environ(), asDriver+"="+own+":"+secret)
		cmd.Dir = folder
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		p, err := confine.Start(cmd, confine.Need{Program: cmd.Path, Folder: folder})
		if err != nil {
			return nil, err
		}
		defer p.Remove()
		if err := cmd.Wait(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out.String())
		}
		if confine.LandlockABI() == 0 || !p.Changed() {
			return nil, fmt.Errorf("expected Landlock and another user, found: %s", p.Level())
		}
		return []string{p.Level()}, nil
	})
}

// confined is the driver's part: it fails where it can do what it may not.
func confined(t *testing.T, files []string) {
	if b, err := os.ReadFile(files[0]); err != nil || string(b) != "own" {
		t.Errorf("its own file: %q, %v", b, err)
	}
	if b, err := os.ReadFile(files[1]); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file outside that every user may read: %q, %v; expected permission denied", b, err)
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("TMPDIR"), "x"), nil, 0o600); err != nil {
		t.Errorf("its temporary folder: %v", err)
	}
}
