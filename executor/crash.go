package executor

import (
	"slices"
	"strings"
	"syscall"
)

// faultSignals are those that a fault of the program itself brings about (signal(7)),
// by the names that [Exit] has.
var faultSignals = func() []string {
	var out []string
	for _, s := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSYS} {
		out = append(out, s.String())
	}
	return out
}()

// goPanic is the exit code of a program in Go that its runtime ends after a panic, a
// fatal error or such a signal, with a report on standard error.
const goPanic = 2

// crash says how a driver's process crashed: by a signal that a fault of its own brings
// about, or by a panic of Go. Empty: it did not. log is its standard error.
func (e Exit) crash(log string) string {
	if slices.Contains(faultSignals, e.Signal) {
		return e.String()
	}
	if e.Signal == "" && e.Code == goPanic {
		return goReport(log)
	}
	return ""
}

// goReport is the first line of the report of Go's runtime in a log; empty: it has none.
func goReport(log string) string {
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "SIG") && strings.Contains(line, ": ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
