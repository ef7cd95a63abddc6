package e2e

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/executor/journal"
)

// postmaster is the process of the private PostgreSQL.
func (p *program) postmaster() int {
	p.t.Helper()
	pid := 0
	waitUntil(p.t, "PostgreSQL has a process", 20*time.Second, func() bool {
		b, err := os.ReadFile(filepath.Join(p.data, "postgres", "postmaster.pid"))
		if err != nil {
			return false
		}
		first, _, _ := strings.Cut(string(b), "\n")
		pid, err = strconv.Atoi(first)
		return err == nil
	}, func() string { return "" })
	return pid
}

// PostgreSQL is killed while 'linktrial run' watches, also when the run has just ended:
// the command says what is down, loses no trial, repeats none, and prints the results.
func TestKillDatabase(t *testing.T) {
	p := &directed{newServed(t)}
	p.lab("prc-117g-anw2c", "vip-lot")
	r := p.start("run", p.plan("three.yaml", three), "--orchestrator", "http://"+p.addr)
	for _, seen := range []string{`\n +1/6 `, `\n +3/6 `, `\n +6/6 `} {
		r.waitFor(seen, 2*time.Minute)
		// It can be back within half a second, before the command asks for anything.
		for range 10 {
			// It may have ended since, with what was killed before: another one is killed then.
			if err := syscall.Kill(p.postmaster(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
			waitUntil(t, "the database answers again", time.Minute, func() bool { _, code := p.cli("run", "list"); return code == 0 }, r.output)
			if strings.Contains(r.output(), "the database does not answer") {
				break
			}
		}
	}
	if code := r.wait(time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	out := r.output()
	// A call that fails is repeated; one that was made before still waits.
	for _, want := range []string{": the database does not answer \\(since ", "nothing is lost", "this command (continues when it answers again|waits for its answer)",
		"the orchestrator is back after ", "nothing was lost", "TCP"} {
		if !regexp.MustCompile("(?i)" + want).MatchString(out) {
			t.Errorf("no word of %q", want)
		}
	}
	for _, never := range []string{"not found", "does not exist", "no rows"} {
		if strings.Contains(out, never) {
			t.Errorf("%q is said", never)
		}
	}
	trials := p.trials(0)
	if len(trials) != 6 {
		t.Fatalf("%d trials", len(trials))
	}
	for i := range trials {
		tr := &trials[i]
		if tr.Verdict != journal.Succeeded || len(attemptsLeft(tr)) != 1 {
			t.Errorf("trial %d: %s", i, attemptsOf(tr))
		}
	}
}

// systemd is told that the orchestrator is ready and goes on working, and is told nothing
// any more by one that is frozen.
func TestServiceManager(t *testing.T) {
	p := newProgram(t)
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	next := func(limit time.Duration) string {
		conn.SetReadDeadline(time.Now().Add(limit))
		b := make([]byte, 4096)
		n, err := conn.Read(b)
		if err != nil {
			return ""
		}
		return string(b[:n])
	}
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "300000")
	r := p.start("serve", "--listen", freeAddr(t))
	if got := next(2 * time.Minute); !strings.HasPrefix(got, "READY=1\nSTATUS=works at http://127.0.0.1:") {
		t.Fatalf("first: %q", got)
	}
	for range 10 {
		if got := next(time.Minute); got != "WATCHDOG=1" {
			t.Fatalf("while it works: %q", got)
		}
	}
	if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	told := 0
	for next(time.Second) != "" && told < 5 { // for three of its intervals nothing comes
		told++
	}
	if told == 5 {
		t.Fatal("a frozen process feeds the watchdog")
	}
	if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if got := next(time.Minute); got != "WATCHDOG=1" {
		t.Fatalf("when it goes on: %q", got)
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	last := next(time.Minute)
	for last == "WATCHDOG=1" {
		last = next(time.Minute)
	}
	if last != "STOPPING=1" {
		t.Errorf("at the end: %q", last)
	}
	r.wait(time.Minute)
}
