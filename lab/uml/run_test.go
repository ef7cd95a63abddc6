package uml

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/process/processtest"
	"linktrial/internal/radio"
	"linktrial/lab/uml/guest"
)

// load keeps every processor busy until the test ends.
func load(t *testing.T) {
	t.Helper()
	for range runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
}

func (b *bench) run(t *testing.T, jobs int, sheets ...Sheet) Result {
	t.Helper()
	for i := range sheets {
		sheets[i] = b.named(t, sheets[i])
	}
	res, err := Run(t.Context(), RunConfig{
		Kernel: b.kernel, Dir: t.TempDir(), Sheets: sheets, Executable: b.executable, Drivers: b.drivers, Trust: trusted, Seed: 7, Jobs: jobs,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range res.Sheets {
		if s.Err != nil || s.Ended != s.Trials {
			t.Fatalf("run %s: %d of %d trials have ended: %v", s.Run, s.Ended, s.Trials, s.Err)
		}
	}
	return res
}

// TestResultsAreByteIdentical is what the lab is for: the journals of two runs are the same
// to the byte, for every driver, however many guests run at a time and however
// busy the machine is.
func TestResultsAreByteIdentical(t *testing.T) {
	b := newBench(t)
	all := []string{"tcp-cubic", "tcp-bbr", "sctp", "udt", "haul", "quic", "lttcp", "tcp-radio", "tcp-radio-newrto"}
	sheets := []Sheet{
		plan(t, "all-drivers", line(256e3, 100*time.Millisecond, uniform(0.03)), 96<<10, 1, all...),
		plan(t, "slow", line(16e3, 500*time.Millisecond, radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.05, BadToGood: 0.4, LossBad: 1}), 16<<10, 2, "tcp-cubic", "tcp-radio-newrto"),
	}
	first := b.run(t, 1, sheets...)
	load(t)
	second := b.run(t, 2, sheets...)
	for i, s := range first.Sheets {
		if len(s.Journals) != 3 {
			t.Fatalf("run %s has journals of %v", s.Run, s.Journals)
		}
		for role, path := range s.Journals {
			x, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			y, err := os.ReadFile(second.Sheets[i].Journals[role])
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(x, y) {
				t.Errorf("run %s, %s: two runs differ: %s", s.Run, role, firstDifference(x, y))
			}
		}
		for _, e := range attempts(t, s.Journals[radio.RoleClient]) {
			t.Log(value(e))
			if e.Verdict != journal.Succeeded {
				t.Errorf("run %s, trial %d: %s", s.Run, e.Trial, value(e))
			}
			if e.Radio == nil || len(e.Radio.Ideal) != 1 || len(e.Radio.CodedBound) != 1 {
				t.Errorf("run %s, trial %d: no report of the radio", s.Run, e.Trial)
			}
		}
	}
	// What the provenance says of where it ran.
	for _, r := range records(t, first.Sheets[0].Journals[radio.RoleServer]) {
		if r.Type != journal.TypeProvenance {
			continue
		}
		var p journal.Provenance
		if err := json.Unmarshal(r.Body, &p); err != nil {
			t.Fatal(err)
		}
		if p.Place != guest.Place || p.Host != guest.Host || !strings.Contains(p.Kernel, "Linux") {
			t.Errorf("provenance: place %q, host %q, kernel %q", p.Place, p.Host, p.Kernel)
		}
		if p.Sysctls["net.ipv4.tcp_retries2"] != "15" {
			t.Errorf("net.ipv4.tcp_retries2 is %q, and TCP-radio's retransmissions with it", p.Sysctls["net.ipv4.tcp_retries2"])
		}
		if r.At.Year() != Epoch.Year() {
			t.Errorf("the guest's clock says %s", r.At)
		}
	}
}

func firstDifference(x, y []byte) string {
	a, b := strings.Split(string(x), "\n"), strings.Split(string(y), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return clip(a[i]) + "\n" + clip(b[i])
		}
	}
	return "one is longer"
}

func clip(s string) string { return s[:min(len(s), 600)] }

// leftovers are processes of guests that still run on the host.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	for range 100 {
		out = nil
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			cwd, _ := os.Readlink(filepath.Join(filepath.Dir(f), "cwd"))
			if strings.HasPrefix(cwd, filepath.Join(dir, "linktrial-guest-")) {
				out = append(out, f)
			}
		}
		if len(out) == 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond) // the kernel ends a group in its own time
	}
	return out
}

// TestGuestThatFails: what befalls a guest is told, and nothing
// of it stays.
func TestGuestThatFails(t *testing.T) {
	kernel := cached(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	script := func(name, text string) string {
		path := filepath.Join(tmp, name)
		processtest.WriteExecutable(t, path, []byte("#!/bin/sh\n"+text+"\n"))
		return path
	}
	s := plan(t, "run", line(64e3, 0, uniform(0)), 1024, 1, "tcp-cubic")
	run := func(ctx context.Context, executable string) (Result, error) {
		return Run(ctx, RunConfig{
			Kernel: kernel, Dir: t.TempDir(), Sheets: []Sheet{s}, Executable: executable, Drivers: tmp, Trust: trusted, Watchdog: 2 * time.Second,
		})
	}
	hung := script("hang", "while :; do :; done")
	for _, tt := range []struct {
		name, executable string
		want             error
	}{
		{"a busy loop", hung, ErrHung},
		{"a panic", script("die", "exit 3"), ErrDied},
	} {
		res, err := run(t.Context(), tt.executable)
		if err != nil {
			t.Fatal(err)
		}
		if r := res.Sheets[0]; !errors.Is(r.Err, tt.want) || r.Ended != 0 || r.Trials != 1 {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel)
	res, err := run(ctx, hung)
	if !errors.Is(err, context.Canceled) || !errors.Is(res.Sheets[0].Err, context.Canceled) {
		t.Errorf("cancelled: %+v, %v", res, err)
	}
	if left := leftovers(t, tmp); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "linktrial-guest-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRunRefuses(t *testing.T) {
	n := line(64e3, 0, uniform(0))
	ok := RunConfig{Kernel: Kernel{Path: "/bin/true"}, Dir: t.TempDir(), Executable: "/bin/true", Drivers: "/bin", Trust: trusted, Sheets: []Sheet{{Run: "a", Network: n}}}
	for name, change := range map[string]func(*RunConfig){
		"no kernel":   func(c *RunConfig) { c.Kernel = Kernel{} },
		"a path":      func(c *RunConfig) { c.Sheets = []Sheet{{Run: "../a", Network: n}} },
		"twice":       func(c *RunConfig) { c.Sheets = append(c.Sheets, c.Sheets[0]) },
		"no network":  func(c *RunConfig) { c.Sheets = []Sheet{{Run: "a"}} },
		"no key":      func(c *RunConfig) { c.Trust = nil },
		"no program":  func(c *RunConfig) { c.Executable = "/nowhere" },
		"no drivers":  func(c *RunConfig) { c.Drivers = "/nowhere" },
		"lost kernel": func(c *RunConfig) { c.Kernel.Path = "/nowhere" },
	} {
		c := ok
		change(&c)
		if _, err := Run(t.Context(), c); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}
