package executor

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"linktrial/executor/journal"
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

// nameCrashes gives flows that failed while a relay process of theirs on this node
// crashed this reason; before is the state of the node's listeners when they began. Of
// other nodes the orchestrator knows, where the journals are together.
func (n *node) nameCrashes(before map[journal.ListenerName]listenerState, flows []*flow) {
	for _, f := range flows {
		r := &f.result
		if !f.countsAsFailure() {
			continue
		}
		for name, was := range before {
			if s := n.listeners.get(name); name.Treatment == f.spec.Treatment && s.crashes > was.crashes {
				text := fmt.Sprintf("%s crashed: %s; the flow ended with %s: %s", n.describe(name), s.failure, r.Reason, r.Message)
				r.Verdict, r.Reason, r.Message = journal.Failed, journal.ReasonCrashed, clip(text)
				break
			}
		}
	}
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
