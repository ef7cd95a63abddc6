package machinetest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/internal/checkout"
	"linktrial/internal/namespace"
	"linktrial/internal/testkind"
)

var _ = testkind.OfPackage(testkind.RealTime, "boots machines")

// leaves names the variable that has a test process make a machine and wait to be killed.
const leaves = "LINKTRIAL_TEST_LEAVES"

// Two machines reach each other, do not see each other's files or processes, and one that
// loses its power boots again with what it had. What a killed test leaves behind, running
// machines included, is found and removed.
func TestMachines(t *testing.T) {
	if os.Getenv(leaves) != "" {
		s := New(t, true)
		m := s.Add(s.Base(), "left")
		m.Boot(m.Booted)
		fmt.Println("machine is up")
		select {}
	}
	s := New(t, false)
	base := s.Base()
	a, b := s.Add(base, "a"), s.Add(base, "b")
	a.Boot(a.Booted)
	b.Boot(b.Booted)
	if got := a.On("hostname; ls /root; ip -brief address show control0"); !strings.HasPrefix(got, "a\ncontrol0") || !strings.Contains(got, a.Address) {
		t.Errorf("the first machine:\n%s", got)
	}
	a.On("echo kept > /root/file; sync; sleep 1000 >/dev/null 2>&1 & echo running")
	if got := b.On("test -e /root/file || echo no file; ls -d /proc/[0-9]* | xargs -I{} cat {}/comm 2>/dev/null | grep -c sleep || true"); got != "no file\n0\n" {
		t.Errorf("the second machine has files or processes of the first: %q", got)
	}
	if _, err := b.Run(t.Context(), "timeout 3 bash -c ': </dev/tcp/"+a.Address+"/22' 2>&1; ip neighbour show "+a.Address+" | grep -q lladdr"); err != nil {
		t.Errorf("the second machine does not reach the first: %v", err)
	}
	a.PowerOff()
	a.Boot(a.Booted)
	if got := a.On("cat /root/file"); got != "kept\n" {
		t.Errorf("after its power was lost the machine has %q", got)
	}
	leftBehind(t)
}

func leftBehind(t *testing.T) {
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
	name := fmt.Sprintf("%s%d", prefix, cmd.Process.Pid)
	left := func() []string {
		var out []string
		for _, p := range append(cgroups(name+"n1"), filepath.Join("/var/tmp", name), namespace.Path(name+"c"), namespace.Path(name+"n1")) {
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
	sweep(t, "")
	if got := left(); len(got) > 0 {
		t.Errorf("left behind: %q", got)
	}
}

// What the tests' room cannot fetch is fetched before it.
func TestBaseIsFetchedBefore(t *testing.T) {
	source, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(source, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(makefile), "scripts/base-image --tar "+BasePackages+" >") {
		t.Errorf("make test-bases does not make the base of %s", BasePackages)
	}
}
