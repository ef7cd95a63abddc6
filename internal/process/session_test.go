package process

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// In a process of the test's own: the value is one of a whole session.
func TestPreferSession(t *testing.T) {
	if os.Getenv("LINKTRIAL_PREFER") != "" {
		if err := PreferSession(5); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile("/proc/self/autogroup")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(strings.TrimSpace(string(b)), " nice 5") {
			t.Errorf("the session's group is %q", b)
		}
		return
	}
	if _, err := os.Stat("/proc/self/autogroup"); errors.Is(err, fs.ErrNotExist) {
		if err := PreferSession(5); err == nil {
			t.Error("no error from a kernel without groups of sessions")
		}
		return
	}
	child := func(own bool) ([]byte, error) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPreferSession$")
		cmd.Env = append(os.Environ(), "LINKTRIAL_PREFER=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: own}
		return cmd.CombinedOutput()
	}
	if out, err := child(true); err != nil {
		t.Errorf("a leader of a session: %v\n%s", err, out)
	}
	if out, err := child(false); err == nil || !strings.Contains(string(out), "does not lead its session") {
		t.Errorf("another process: %v\n%s", err, out)
	}
}
