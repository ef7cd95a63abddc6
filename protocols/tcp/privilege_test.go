package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// TestRelinquish: a process whose run loads no eBPF has no right to it while it
// waits; one whose run may have to load it again keeps it.
func TestRelinquish(t *testing.T) {
	needRoot(t)
	t.Parallel()
	// Without cgo, as make build has it: only then every thread can give up a capability.
	dir := t.TempDir()
	driver := filepath.Join(dir, "tcp")
	build := exec.Command("go", "build", "-o", driver, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const all = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON
	for congestion, want := range map[string]uint64{"cubic": 1 << unix.CAP_NET_ADMIN, "radio": all} {
		p := &contract.Parameters{Contract: contract.Version, Role: contract.RoleServer, Local: contract.Endpoint{Address: "127.0.0.1", Port: freePort(t)},
			Options: map[string]any{"congestion": congestion}, SampleIntervalMS: 100}
		document, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(driver)
		cmd.Stdin = strings.NewReader(string(document))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534},
			AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_BPF, unix.CAP_PERFMON}}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Start(cmd); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || !strings.Contains(line, `"ready"`) {
			t.Errorf("%s: %q, %v", congestion, line, err)
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", cmd.Process.Pid))
		if err != nil || len(threads) < 2 {
			t.Errorf("%s: threads %q, %v", congestion, threads, err)
		}
		for _, file := range threads {
			for _, set := range []string{"CapPrm", "CapEff"} {
				if got := capabilities(t, file, set); got != want {
					t.Errorf("%s, %s of %s: %x, expected %x", congestion, set, file, got, want)
				}
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
	}
}

// freePort is one at which nobody listens now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func capabilities(t *testing.T, file, set string) uint64 {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), set+":")
	digits, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
