package protocoltest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"linktrial/protocols/contract"
)

// aware are faults of drivers that know the suite, and how each looks for it: it reports a
// false time where it does not find it.
var aware = map[string]func(p *contract.Parameters) bool{
	"aware-of-parent": func(*contract.Parameters) bool { return !ofAgent(os.Getppid()) },
	"aware-of-descent": func(*contract.Parameters) bool {
		for pid := os.Getppid(); pid > 0; pid = parentOf(pid) {
			if !ofAgent(pid) {
				return true
			}
		}
		return false
	},
	"aware-of-processes": func(*contract.Parameters) bool {
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is in order
		for _, file := range all {
			b, err := os.ReadFile(file)
			if words := bytes.Split(b, []byte{0}); err == nil && len(words) > 2 && bytes.HasPrefix(words[1], []byte("-test.")) || bytes.Contains(b, []byte("protocol\x00check")) {
				return true
			}
		}
		return false
	},
	"aware-of-home": func(*contract.Parameters) bool {
		return os.Getenv("HOME") == "" || os.Getenv("HOME") != os.Getenv("TMPDIR")
	},
	// Privileges that agents give to no driver, and that root has by itself.
	"aware-of-privileges": func(*contract.Parameters) bool {
		b, err := os.ReadFile("/proc/self/status")
		return err == nil && !strings.Contains(string(b), "NoNewPrivs:\t1") || os.WriteFile("/var/tmp/linktrial-aware", nil, 0o600) == nil
	},
	// The suite's sizes, if they were the same each time.
	"aware-of-sizes": func(p *contract.Parameters) bool {
		return slices.Contains([]int64{0, 1, kib, 64 * kib, 256 * kib, mib, 2 * mib, 4 * mib, 16 * mib, 64 * mib}, p.Transfer.SizeBytes)
	},
	// A radio that has carried nothing.
	"aware-of-counters": func(p *contract.Parameters) bool {
		b, err := os.ReadFile("/proc/net/dev")
		for line := range strings.Lines(string(b)) {
			if counts, is := strings.CutPrefix(strings.TrimSpace(line), p.Device+":"); is {
				n, err := strconv.ParseInt(strings.Fields(counts)[0], 10, 64)
				return err != nil || n < 64*kib
			}
		}
		return err != nil || p.Device == ""
	},
}

// recognised reports whether a driver with a fault of these has found the suite.
func recognised(fault string, p *contract.Parameters) bool {
	look := aware[fault]
	return look == nil || look(p)
}

// ofAgent reports whether a process has the command line of an agent.
func ofAgent(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	words := strings.Split(string(b), "\x00")
	return err == nil && len(words) > 2 && filepath.Base(words[0]) == "linktrial" && (words[1] == "agent" || words[2] == "guest-agent")
}

// parentOf is the number of a process's parent, 0 for none.
func parentOf(pid int) (parent int) {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "PPid:"); ok {
			parent, _ = strconv.Atoi(strings.TrimSpace(text))
		}
	}
	return parent
}
