package protocoltest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// aware are faults of drivers that know the suite, and how each looks for it: it reports a
// false time where it does not find it.
var aware = map[string]func() bool{
	"aware-of-parent": func() bool { return !ofAgent(os.Getppid()) },
	"aware-of-descent": func() bool {
		for pid := os.Getppid(); pid > 0; pid = parentOf(pid) {
			if !ofAgent(pid) {
				return true
			}
		}
		return false
	},
	"aware-of-processes": func() bool {
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is in order
		for _, file := range all {
			b, err := os.ReadFile(file)
			if words := bytes.Split(b, []byte{0}); err == nil && len(words) > 2 && bytes.HasPrefix(words[1], []byte("-test.")) || bytes.Contains(b, []byte("protocol\x00check")) {
				return true
			}
		}
		return false
	},
	"aware-of-home": func() bool { return os.Getenv("HOME") == "" || os.Getenv("HOME") != os.Getenv("TMPDIR") },
	// Privileges that agents give to no driver, and that root has by itself.
	"aware-of-privileges": func() bool {
		b, err := os.ReadFile("/proc/self/status")
		return err == nil && !strings.Contains(string(b), "NoNewPrivs:\t1") || os.WriteFile("/var/tmp/linktrial-aware", nil, 0o600) == nil
	},
}

// recognised reports whether a driver with a fault of these has found the suite.
func recognised(fault string) bool {
	look := aware[fault]
	return look == nil || look()
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
