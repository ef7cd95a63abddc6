// Package namespacetest runs tests in network namespaces of their own. Comes in: a test.
// Goes out: whether it runs in one. For tests alone; needs root.
package namespacetest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mark is the environment variable with the name of the test that a process runs.
const mark = "LINKTRIAL_TEST_NAMESPACE"

// Alone reports whether the test runs in a process and a network namespace of its own, all
// threads of it. Where it does not, it runs the test there, and the caller returns.
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(mark) == t.Name() {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=true", "-test.timeout=5m")
	child.Env = append(os.Environ(), mark+"="+t.Name())
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in a namespace of its own: %v\n%s", err, out)
	}
	return false
}

// IP runs ip(8) with arguments without blanks.
func IP(t *testing.T, format string, a ...any) {
	t.Helper()
	arguments := fmt.Sprintf(format, a...)
	if out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", arguments, err, out)
	}
}
