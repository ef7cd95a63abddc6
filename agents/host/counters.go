package host

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"linktrial/executor/journal"
)

// counters is what the kernel has counted since the node was started; nil: it does not say.
type counters struct {
	pressure, steal, throttled *time.Duration
}

// since is what was counted since an earlier reading.
func (c counters) since(before counters) journal.HostLoad {
	return journal.HostLoad{
		Pressure: grown(c.pressure, before.pressure), Steal: grown(c.steal, before.steal), Throttled: grown(c.throttled, before.throttled),
	}
}

func grown(now, before *time.Duration) *time.Duration {
	if now == nil || before == nil {
		return nil
	}
	d := max(0, *now-*before)
	return &d
}

// Files of the kernel.
const (
	pressureFile = "/proc/pressure/cpu" // kernel.org: accounting/psi
	statFile     = "/proc/stat"         // proc(5)
	groupFile    = "/proc/self/cgroup"  // cgroups(7)
	groups       = "/sys/fs/cgroup"
	userTick     = 10 * time.Millisecond // of /proc/stat: USER_HZ is 100 on every platform of Go's
)

func readCounters() counters {
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil // not of this kernel, or not for this container: not known
		}
		return b
	}
	c := counters{pressure: parsePressure(read(pressureFile)), steal: parseSteal(read(statFile))}
	if group := parseGroup(read(groupFile)); group != "" {
		c.throttled = parseThrottled(read(groups + group + "/cpu.stat"))
	}
	return c
}

// parsePressure reads the time in which a program that was ready did not run: "some …
// total=1720210101", in microseconds.
func parsePressure(b []byte) *time.Duration {
	for line := range lines(b) {
		if rest, some := strings.CutPrefix(line, "some "); some {
			_, total, _ := strings.Cut(rest, "total=")
			return number(total, time.Microsecond)
		}
	}
	return nil
}

// parseSteal reads the time that the hypervisor gave to others: the eighth number of the
// line "cpu", of all processors together.
func parseSteal(b []byte) *time.Duration {
	for line := range lines(b) {
		if f := strings.Fields(line); len(f) > 8 && f[0] == "cpu" {
			return number(f[8], userTick)
		}
	}
	return nil
}

// parseGroup is the path of the process's group in the one hierarchy of cgroups version 2;
// empty: it is in none, or in the root, which has no bound.
func parseGroup(b []byte) string {
	for line := range lines(b) {
		if path, ok := strings.CutPrefix(line, "0::"); ok && path != "/" && !strings.Contains(path, "..") {
			return path
		}
	}
	return ""
}

// parseThrottled reads for how long a bound on the group's processor time held it back.
func parseThrottled(b []byte) *time.Duration {
	for line := range lines(b) {
		if us, ok := strings.CutPrefix(line, "throttled_usec "); ok {
			return number(us, time.Microsecond)
		}
	}
	return nil
}

func lines(b []byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			if !yield(s.Text()) {
				return
			}
		}
	}
}

// number is a count of units; nil: it is none.
func number(s string, unit time.Duration) *time.Duration {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n < 0 || n > int64(1<<62/unit) {
		return nil
	}
	d := time.Duration(n) * unit
	return &d
}
