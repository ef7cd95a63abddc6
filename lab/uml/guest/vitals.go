package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/radio"
	"linktrial/internal/vitals"
)

// VitalsFile is where a run's looks at its processes are, one [Look] in JSON on a
// line, seen from the shared folder.
func (s Sheet) VitalsFile() string { return filepath.Join(s.Run, "vitals.jsonl") }

// Look is what the processes of a guest use at one moment.
type Look struct {
	At          time.Duration         `json:"at_ns"`        // virtual time since the boot
	MemoryBytes int64                 `json:"memory_bytes"` // of the guest that is in use, its kernel's and files in memory included
	Processes   map[string]vitals.Use `json:"processes"`    // by role; the first process is [Emulator]
}

// vitalsDir is where the guest's processes answer, each in a folder of its own, for the
// first process of every node has the same number there; sockets have short paths.
const vitalsDir = "/run/vitals"

func vitalsOf(process string) string { return filepath.Join(vitalsDir, process) }

// answer has this process and the agents that it starts from now on tell what they use.
func (g *guest) answer() error {
	g.answers = true
	if err := os.MkdirAll(vitalsOf(Emulator), privateRun); err != nil {
		return err
	}
	if err := os.Setenv(vitals.FolderVariable, vitalsOf(Emulator)); err != nil {
		return err
	}
	vitals.Serve()
	return nil
}

// environment is that of a node's agent; nil: this process's own.
func (g *guest) environment(role radio.Role) ([]string, error) {
	if !g.answers {
		return nil, nil
	}
	if err := os.MkdirAll(vitalsOf(string(role)), privateRun); err != nil {
		return nil, err
	}
	return append(os.Environ(), vitals.FolderVariable+"="+vitalsOf(string(role))), nil
}

// lookEvery notes what the processes of a run use until the returned function is called.
func (g *guest) lookEvery(ctx context.Context, s Sheet, every time.Duration) (stop func() error, err error) {
	f, err := os.Create(filepath.Join(ShareDir, s.VitalsFile()))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		t := time.NewTicker(every)
		defer t.Stop()
		enc := json.NewEncoder(f)
		for {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-t.C:
			}
			l, err := g.look()
			if err == nil {
				err = enc.Encode(l)
			}
			if err != nil {
				done <- err
				return
			}
		}
	}()
	return func() error {
		cancel()
		return errors.Join(<-done, f.Close())
	}, nil
}

// look looks at the processes that are there: an agent that has ended meanwhile is not.
func (g *guest) look() (Look, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return Look{}, fmt.Errorf("memory of the guest: %w", err)
	}
	l := Look{At: time.Since(g.began), Processes: map[string]vitals.Use{}}
	l.MemoryBytes = int64(info.Totalram-info.Freeram-info.Bufferram) * int64(info.Unit) //nolint:gosec // a guest has some hundred MiB
	g.mu.Lock()
	pids := map[string]int{Emulator: os.Getpid()}
	for role, pid := range g.agentPIDs {
		pids[string(role)] = pid
	}
	g.mu.Unlock()
	for name, pid := range pids {
		use, err := vitals.UseOf("", pid)
		if err == nil {
			use.Vitals, err = vitals.Of(vitalsOf(name), 1)
		}
		if err != nil {
			if unix.Kill(pid, 0) != nil {
				continue
			}
			return Look{}, fmt.Errorf("the %s: %w", name, err)
		}
		l.Processes[name] = use
	}
	return l, nil
}

// notePID keeps which process is the agent of a node.
func (g *guest) notePID(role radio.Role, pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.agentPIDs == nil {
		g.agentPIDs = map[radio.Role]int{}
	}
	g.agentPIDs[role] = pid
}
