//go:build converge

package playbooks

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/internal/namespace"
)

// leaves names the variable that has a test process make a machine and wait to be
// killed.
const leaves = "LINKTRIAL_TEST_LEAVES"

// The next test finds and removes what a killed test leaves behind, running machines
// included.
func TestKilledTestLeavesNothing(t *testing.T) {
	if os.Getenv(leaves) != "" {
		newSite(t).add("left", nil)
		fmt.Println("machine is up")
		select {}
	}
	tools(t)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), leaves+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up := false
	for lines := bufio.NewScanner(out); !up && lines.Scan(); up = lines.Text() == "machine is up" {
		t.Log(lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	name := fmt.Sprintf("ltp%d", cmd.Process.Pid)
	left := func() []string {
		var out []string
		places := append(cgroups(name+"n1"), filepath.Join("/var/tmp", name), namespace.Path(name+"c"), namespace.Path(name+"n1"))
		for _, p := range places {
			if _, err := os.Stat(p); err == nil {
				out = append(out, p)
			}
		}
		mounts, err := os.ReadFile("/proc/self/mounts")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, "/"+name) {
				out = append(out, line)
			}
		}
		return out
	}
	if got := left(); !up || len(got) < 5 {
		t.Fatalf("the test that was to be killed left too little to look at: up %v, %q", up, got)
	}
	sweep(t)
	if got := left(); len(got) > 0 {
		t.Errorf("left behind: %q", got)
	}
}
