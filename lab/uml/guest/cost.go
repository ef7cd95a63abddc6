package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Emulator is the name of the guest's first process in [Costs]; agents have
// their role's, and their drivers count as theirs.
const Emulator = "emulator"

// Costs are how often the threads of each process were switched away from in
// the course of a sheet, by the guest's scheduler.
type Costs map[string]int64

func (c Costs) add(name string, state *os.ProcessState) {
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		c[name] += u.Nvcsw + u.Nivcsw
	}
}

// ownSwitches are those of the calling process.
func ownSwitches() (int64, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("count context switches: %w", err)
	}
	return u.Nvcsw + u.Nivcsw, nil
}

func (c Costs) String() string {
	b, err := json.Marshal(map[string]int64(c))
	if err != nil {
		return "{}" // there is no such map
	}
	return string(b)
}

// ParseCosts reads the text of a line of kind [LineCosts].
func ParseCosts(s string) (Costs, error) {
	var c Costs
	if err := json.Unmarshal([]byte(s), &c); err != nil {
		return nil, fmt.Errorf("costs of a sheet: %w", err)
	}
	return c, nil
}

// tracer counts the system calls of a process and its children. Tracing takes
// no virtual time but for the second in which it takes hold of a process.
type tracer struct {
	cmd *exec.Cmd
}

// TracePath is where the counts of a process are, seen from the shared folder.
func TracePath(process string) string { return "trace." + process }

// TraceProgram counts system calls; it must be on the host.
const TraceProgram = "/usr/bin/strace"

// traceBegins is what a tracer has, in virtual time, to take hold of a process.
const traceBegins = time.Second

// untraced is a process that the tracer of its parent leaves alone.
func untraced() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_UNTRACED}
}

func trace(name string, pid int) (*tracer, error) {
	t := &tracer{cmd: exec.Command(TraceProgram, "-f", "-c", "-S", "calls", "-o", filepath.Join(ShareDir, TracePath(name)), "-p", fmt.Sprint(pid))}
	t.cmd.SysProcAttr = untraced()
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("count system calls of %s: %w", name, err)
	}
	time.Sleep(traceBegins)
	return t, nil
}

// end lets the process go and has the counts written.
func (t *tracer) end() error {
	err := t.cmd.Process.Signal(os.Interrupt)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("count system calls: %w", err)
	}
	// Interrupted it ends by that signal once it has written.
	var exit *exec.ExitError
	if err := t.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("count system calls: %w", err)
	}
	return nil
}
