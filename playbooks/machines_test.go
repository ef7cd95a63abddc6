//go:build converge

package playbooks

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// add is [site.addOf] for the suite that most tests are about.
func (s *site) add(name string, prepare func(tg *target)) *target {
	s.t.Helper()
	return s.addOf(suite, name, prepare)
}

// files lists the files of a target that the base does not have, with sizes and times,
// except logs and what Ansible itself leaves behind.
func (tg *target) files(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(tg.Changed, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(path, tg.Changed)
		for _, noise := range []string{"/var/log", "/root/.ansible", "/root/.ssh", "/tmp", "/var/tmp", "/run", "/var/cache/apt", "/var/lib/systemd", "/var/lib/private", "/etc/machine-id", "/dev"} {
			if rel == noise {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
		}
		if d.IsDir() {
			return nil // an overlay has folders also for what was left out above
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[rel] = fmt.Sprintf("%d bytes, %s", info.Size(), info.ModTime())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
