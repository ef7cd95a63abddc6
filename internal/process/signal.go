package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Signal sends a signal to this very process, never to another that has got its PID
// since. The error is [os.ErrProcessDone] where it has ended.
func (id Identity) Signal(sig syscall.Signal) error {
	// Go holds the process by a file descriptor of its own (pidfd_open(2)): what is
	// found to be this process afterwards is what the signal reaches.
	p, err := os.FindProcess(id.PID)
	if err != nil {
		return fmt.Errorf("process %d: %w", id.PID, err)
	}
	defer func() { _ = p.Release() }() // a file descriptor, nothing that was written
	if !id.Alive() {
		return fmt.Errorf("process %d: %w", id.PID, os.ErrProcessDone)
	}
	if err := p.Signal(sig); err != nil {
		return fmt.Errorf("signal %d to process %d: %w", sig, id.PID, err)
	}
	return nil
}

// Children returns the children of a process that run, oldest first as far as their
// numbers say.
func Children(parent int) ([]Identity, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("children of process %d: %w", parent, err)
	}
	var out []Identity
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		s, err := readStat(pid)
		if err != nil || s.parent != parent || s.state == 'Z' {
			continue // it has ended, or is of another
		}
		out = append(out, Identity{PID: pid, StartTicks: s.start})
	}
	return out, nil
}

// Program is the path of the file that a process runs.
func (id Identity) Program() (string, error) {
	path, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(id.PID), "exe"))
	switch {
	case err != nil && id.Alive():
		return "", fmt.Errorf("process %d: %w", id.PID, err)
	case !id.Alive():
		return "", fmt.Errorf("process %d: %w", id.PID, os.ErrProcessDone)
	}
	return strings.TrimSuffix(path, " (deleted)"), nil
}

// Ended reports whether an error of [Identity.Signal] or [Identity.Program] says that the
// process has ended.
func Ended(err error) bool { return errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) }
