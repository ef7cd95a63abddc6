package playbooks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestLint(t *testing.T) {
	lint := ansible("ansible-lint")
	if _, err := os.Stat(lint); err != nil {
		unavailable(t, "Ansible is not installed (scripts/install-deps ansible): %v", err)
	}
	cmd := exec.Command(lint, "--nocolor", "playbooks/site.yml", "playbooks/remove.yml")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(lint)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Profile 'production' was required, and it passed")) {
		t.Errorf("ansible-lint: %v\n%s", err, out)
	}
}
