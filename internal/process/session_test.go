package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

func TestStartBackground(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := StartBackground(cmd, 7); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("session %d, %v, want %d, its own", sid, err, pid)
	}
	// The system call returns 20 - nice (getpriority(2)).
	if n, err := unix.Getpriority(unix.PRIO_PROCESS, pid); err != nil || n != 13 {
		t.Errorf("nice value %d, %v, want 7", 20-n, err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid))
	if err == nil && !strings.HasSuffix(strings.TrimSpace(string(b)), " nice 7") {
		t.Errorf("the session's group is %q", b)
	}
}

func TestGroupTime(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := StartBackground(cmd, 0); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for {
		used, err := GroupTime(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if used > time.Minute {
			t.Fatalf("%s of processor time", used)
		}
		if used >= 50*time.Millisecond {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if used, err := GroupTime(1 << 30); err != nil || used != 0 {
		t.Errorf("of no group: %s, %v", used, err)
	}
}

// A process that has ended and that nobody has waited for is still in its group.
func TestGroupRuns(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := cmd.Process.Pid
	if !GroupRuns(group) {
		t.Error("a process runs, and its group does not")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for {
		if s, err := readStat(group); err != nil || s.state == 'Z' {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if syscall.Kill(-group, 0) != nil {
		t.Error("one that nobody has waited for cannot be signalled")
	}
	if GroupRuns(group) {
		t.Error("a process has ended, and its group runs")
	}
	_ = cmd.Wait() // it was killed
	if GroupRuns(group) {
		t.Error("a group without processes runs")
	}
}
