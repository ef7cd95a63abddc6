package uml

import (
	"maps"
	"os"
	"strings"
	"testing"

	"linktrial/executor/journal"
	"linktrial/lab/uml/guest"
)

const summary = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000006           0        12           epoll_pwait
 40.00    0.000004           0         3         2 read
------ ----------- ----------- --------- --------- ----------------
100.00    0.000010           0        15         2 total
`

func TestParseTrace(t *testing.T) {
	got, err := parseTrace([]byte(summary))
	if want := map[string]int64{"epoll_pwait": 12, "read": 3}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, expected %v", got, err, want)
	}
	if got, err := parseTrace(nil); err != nil || len(got) != 0 {
		t.Errorf("no calls: %v, %v", got, err)
	}
	for name, text := range map[string]string{
		"cut off":   summary[:strings.Index(summary, "read")+5],
		"no number": strings.Replace(summary, "12", "xx", 1),
		"negative":  strings.Replace(summary, " 12", "-12", 1),
		"columns":   strings.Replace(summary, "read", "read and more", 1),
	} {
		if got, err := parseTrace([]byte(text)); err == nil || !strings.Contains(err.Error()+"line", "line") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func FuzzParseTrace(f *testing.F) {
	f.Add([]byte(summary))
	f.Fuzz(func(t *testing.T, b []byte) {
		calls, err := parseTrace(b)
		for name, n := range calls {
			if err == nil && (name == "" || n < 0) {
				t.Errorf("%q: %d calls of %q", b, n, name)
			}
		}
	})
}

// TestCosts: counting changes nothing of what is counted, and what is counted
// belongs to the process that it is said of.
func TestCosts(t *testing.T) {
	b := newBench(t)
	if _, err := os.Stat(guest.TraceProgram); err != nil {
		t.Skip("needs the package strace:", err)
	}
	s := b.named(t, plan(t, "run", line(256e3, 0, uniform(0)), 16<<10, 1, "tcp-cubic"))
	run := func(count, trace bool) SheetResult {
		t.Helper()
		res, err := Run(t.Context(), RunConfig{
			Kernel: b.kernel, Dir: t.TempDir(), Sheets: []Sheet{s}, Executable: b.executable, Drivers: b.drivers, Trust: trusted, Seed: 7, Count: count, Trace: trace,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := res.Sheets[0]; r.Err != nil || r.Ended != 1 {
			t.Fatalf("%+v", r)
		}
		return res.Sheets[0]
	}
	counted, again, traced := run(true, false), run(true, false), run(false, true)
	if !maps.Equal(counted.Switches, again.Switches) {
		t.Errorf("two runs differ in their context switches: %v and %v", counted.Switches, again.Switches)
	}
	for _, process := range []string{guest.Emulator, "client", "server", "relay"} {
		if counted.Switches[process] == 0 {
			t.Errorf("no context switches of %s: %v", process, counted.Switches)
		}
	}
	if counted.Host.Processor <= 0 || counted.Host.Switches <= 0 || traced.Host != (HostCost{}) || counted.SystemCalls != nil {
		t.Errorf("of the host: counted %+v, traced %+v; system calls without tracing %v", counted.Host, traced.Host, counted.SystemCalls)
	}
	calls := traced.SystemCalls
	// The emulator alone sets timers of this kind; the agents' programs are not its own.
	if e, c := calls[guest.Emulator], calls["client"]; e["timerfd_settime"] == 0 || e["execve"] != 0 || c["timerfd_settime"] != 0 || c["execve"] == 0 {
		t.Errorf("system calls: %v", calls)
	}
	x, y := attempts(t, counted.Journals["client"]), attempts(t, traced.Journals["client"])
	if len(x) != 1 || len(y) != 1 || x[0].Verdict != journal.Succeeded || y[0].Verdict != journal.Succeeded {
		t.Fatalf("%+v, %+v", x, y)
	}
	without, with := x[0].Flows[0].Result.ElapsedNS, y[0].Flows[0].Result.ElapsedNS
	if d := float64(with)/float64(without) - 1; d < -0.01 || d > 0.01 {
		t.Errorf("tracing changes the transfer's time from %d to %d ns", without, with)
	}
}
