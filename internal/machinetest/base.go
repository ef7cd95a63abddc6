package machinetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"linktrial/internal/checkout"
)

// BasePackages are those of Debian's smallest system that boots and has a network; the
// Makefile's test-bases fetches them before the tests, which have no network.
const BasePackages = "systemd systemd-sysv dbus iproute2"

// Base unpacks a bare Debian into a folder of the site, for [Site.Add].
func (s *Site) Base() string {
	s.T.Helper()
	source, err := checkout.Root()
	if err != nil {
		s.T.Fatal(err)
	}
	out, err := exec.CommandContext(s.T.Context(), filepath.Join(source, "scripts", "base-image"), append([]string{"--tar"}, strings.Fields(BasePackages)...)...).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			s.Unavailable("scripts/base-image: %v: %s", err, lastLine(failed.Stderr))
		}
		s.Unavailable("scripts/base-image: %v", err)
	}
	dir := filepath.Join(s.Dir, "base")
	if err := os.Mkdir(dir, 0o755); err != nil {
		s.T.Fatal(err)
	}
	run(s.T, "tar", "-C", dir, "-xf", strings.TrimSpace(string(out)))
	return dir
}
