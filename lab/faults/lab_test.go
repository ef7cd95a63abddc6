package faults

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/driverfolder"
	"linktrial/internal/faultlog"
	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// drivenAgent is a supervised process with two children that run out of a driver's
// folder, as an agent has listeners.
func drivenAgent(t *testing.T) *process.Supervisor {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "udt")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, driverfolder.Manifest), nil, 0o644))
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	in, err := os.Open(sleep)
	require.NoError(t, err)
	defer in.Close()
	driver := filepath.Join(dir, "udt")
	out, err := os.OpenFile(driver, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	sup, err := process.Supervise("agent", slog.New(slog.DiscardHandler), func() (*exec.Cmd, error) {
		cmd := exec.Command("sh", "-c", `"$0" 600 & "$0" 600 & while kill -0 $$; do wait; done`, driver)
		return cmd, process.Start(cmd)
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		sup.Stop(context.Background(), 0)
		all, _ := filepath.Glob("/proc/[0-9]*/exe")
		for _, link := range all {
			if path, err := os.Readlink(link); err == nil && path == driver {
				pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
				if err == nil {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
	})
	return sup
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// state is the state letter of a process (proc(5)), 0 where there is none.
func state(t *testing.T, id process.Identity) byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(id.PID), "stat"))
	if err != nil {
		return 0
	}
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] == ')' {
			return b[i+2]
		}
	}
	return 0
}

func TestLab(t *testing.T) {
	agent := drivenAgent(t)
	l := &Lab{Agent: func(radio.Role) int { return agent.PID() }, Idle: func(r radio.Role) bool { return r == radio.RoleRelay }}
	on := func(kind faultlog.Kind, target faultlog.Target, node radio.Role) Injection {
		return Injection{Kind: kind, Target: target, Node: node}
	}
	until(t, "two listeners run", func() bool { return l.listeners(radio.RoleServer) == 2 })

	// A driver is stopped, goes on, and is killed.
	drivers, err := process.Children(agent.PID())
	require.NoError(t, err)
	require.Len(t, drivers, 2)
	in, err := l.Inject(t.Context(), on(faultlog.Stop, faultlog.Driver, radio.RoleServer))
	require.NoError(t, err)
	require.True(t, in.Touches)
	require.Regexp(t, `^udt, process \d+$`, in.Detail)
	until(t, "one driver is stopped", func() bool { return (state(t, drivers[0]) == 'T') != (state(t, drivers[1]) == 'T') })
	require.NoError(t, in.End())
	until(t, "no driver is stopped", func() bool { return state(t, drivers[0]) != 'T' && state(t, drivers[1]) != 'T' })
	other := on(faultlog.Kill, faultlog.Driver, radio.RoleServer)
	other.Protocol = "tcp"
	_, _, err = l.find(other)
	require.ErrorIs(t, err, errNone, "no process of another driver is hit")
	in, err = l.Inject(t.Context(), on(faultlog.Kill, faultlog.Driver, radio.RoleServer))
	require.NoError(t, err)
	until(t, "one driver has ended", func() bool { return drivers[0].Alive() != drivers[1].Alive() })
	require.False(t, in.Working(t.Context()), "a listener is missing")

	// A killed agent works again when another one has as many listeners.
	before, err := process.Identify(agent.PID())
	require.NoError(t, err)
	in, err = l.Inject(t.Context(), on(faultlog.Kill, faultlog.Agent, radio.RoleServer))
	require.NoError(t, err)
	until(t, "the agent has ended", func() bool { return !before.Alive() })
	until(t, "the next one works", func() bool { return in.Working(t.Context()) })
	require.NotEqual(t, before.PID, agent.PID())
	until(t, "two listeners run", func() bool { return l.listeners(radio.RoleServer) == 2 })

	in, err = l.Inject(t.Context(), on(faultlog.Stop, faultlog.Agent, radio.RoleRelay))
	require.NoError(t, err)
	require.False(t, in.Touches, "a relay that only forwards has no part in an attempt")
	for _, target := range []faultlog.Target{faultlog.Agent, faultlog.Disk, faultlog.Node, faultlog.Radio} {
		require.False(t, l.touches(on(faultlog.Kill, target, radio.RoleRelay)), target)
		require.True(t, l.touches(on(faultlog.Kill, target, radio.RoleServer)), target)
	}
	stopped, err := process.Identify(agent.PID())
	require.NoError(t, err)
	until(t, "the agent is stopped", func() bool { return state(t, stopped) == 'T' })
	require.NoError(t, in.End())
}

// What ends while it is stopped is no error; what is not there is one.
func TestLabWithoutProcess(t *testing.T) {
	agent := drivenAgent(t)
	l := &Lab{Agent: func(radio.Role) int { return agent.PID() }, Orchestrator: func() int { return os.Getpid() }, Idle: func(radio.Role) bool { return false }}
	in, err := l.Inject(t.Context(), Injection{Kind: faultlog.Stop, Target: faultlog.Agent, Node: radio.RoleClient})
	require.NoError(t, err)
	id, err := process.Identify(agent.PID())
	require.NoError(t, err)
	require.NoError(t, id.Signal(syscall.SIGKILL))
	until(t, "the agent has ended", func() bool { return !id.Alive() })
	require.NoError(t, in.End())

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = l.Inject(ctx, Injection{Kind: faultlog.Kill, Target: faultlog.Database})
	require.ErrorIs(t, err, context.DeadlineExceeded, "this process has no PostgreSQL")
}

// An orchestrator that is gone is killed and held until the end.
func TestOrchestratorGone(t *testing.T) {
	sup := drivenAgent(t)
	var held []bool
	l := &Lab{Orchestrator: sup.PID, HoldOrchestrator: func(on bool) { held = append(held, on) }, Answers: func(context.Context) bool { return true }}
	before, err := process.Identify(sup.PID())
	require.NoError(t, err)
	in, err := l.Inject(t.Context(), Injection{Kind: faultlog.Gone, Target: faultlog.Orchestrator, For: time.Hour})
	require.NoError(t, err)
	require.False(t, in.Touches)
	until(t, "it has ended", func() bool { return !before.Alive() })
	require.Equal(t, []bool{true}, held)
	require.NoError(t, in.End())
	require.Equal(t, []bool{true, false}, held)
	require.True(t, in.Working(t.Context()))
}
