// Package process starts child processes that cannot outlive their parent, and
// finds and ends those that an earlier, killed parent left behind. Linux only.
// Comes in: commands. Goes out: running processes and their identities.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spawner is one thread that lives as long as the process. The kernel sends a
// child its parent-death signal when the THREAD that started it dies
// (prctl(2), PR_SET_PDEATHSIG), and Go ends threads whose locked goroutine
// returns, so children must not be started from just any thread.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	OnThread(func() {
		for f := range work {
			f()
		}
	})
	return work
})

// OnThread runs f on a thread of its own, which ends with f, and does not wait
// for it. It is never the process's first thread: that thread stays when its
// goroutine has ended, and /proc shows its attributes, the network namespace above
// all, as those of the process.
func OnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			f()
			return
		}
		// While this goroutine holds the first thread, the next one gets another thread.
		held := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(held)
			f()
		}()
		<-held
		runtime.UnlockOSThread()
	}()
}

func onSpawner(f func() error) error {
	done := make(chan error, 1)
	spawner() <- func() { done <- f() }
	return <-done
}

// Start starts cmd so that it is killed when this process dies, in whatever
// way, in a process group of its own. Ctrl-C at the terminal therefore reaches
// it only if the parent passes it on.
func Start(cmd *exec.Cmd) error {
	return StartIn(cmd, "")
}

// StartIn is [Start] inside the network namespace whose file is given
// ("/run/netns/…"); empty means the caller's own.
func StartIn(cmd *exec.Cmd, netns string) error {
	bind(cmd)
	return onSpawner(func() error {
		start := cmd.Start
		if netns != "" {
			start = func() error { return inNamespace(netns, cmd.Start) }
		}
		return startMarked(cmd, start, nil)
	})
}

// bind makes the child die with the thread that starts it, in a group of its own.
func bind(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid // a session of its own is a group of its own
}

// StartOnThread is [Start] on a thread of its own, which prepare may change first: the
// child inherits what the thread has become. The thread lasts until [Forget] is called,
// because its end would kill the child.
func StartOnThread(cmd *exec.Cmd, prepare func() error) error {
	bind(cmd)
	done := make(chan error, 1)
	OnThread(func() {
		forgotten := make(chan struct{})
		err := prepare()
		if err == nil {
			err = startMarked(cmd, cmd.Start, forgotten)
		}
		done <- err
		if err == nil {
			<-forgotten
		}
	})
	return <-done
}

// InNamespace runs f on a thread inside a network namespace. What f opens
// there (sockets, devices) stays there; goroutines that f starts do not.
func InNamespace(netns string, f func() error) error {
	return onSpawner(func() error { return inNamespace(netns, f) })
}

// EnterNamespace has the calling thread, which the caller has locked and will not use for
// anything else, enter a network namespace whose file is given; empty: it stays.
func EnterNamespace(netns string) error {
	if netns == "" {
		return nil
	}
	there, err := os.Open(netns)
	if err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", netns, err)
	}
	return nil
}

// inNamespace must run on the spawner's thread. It panics when the thread cannot
// go back: every later child would be started in the wrong network.
func inNamespace(netns string, f func() error) error {
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fmt.Errorf("open own network namespace: %w", err)
	}
	defer home.Close()
	if err := EnterNamespace(netns); err != nil {
		return err
	}
	ferr := f()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		panic(fmt.Sprintf("cannot leave network namespace %s: %v", netns, err))
	}
	return ferr
}

// Identity names a process. The PID alone would not: the kernel gives it to
// another process later.
type Identity struct {
	PID int `json:"pid"`
	// StartTicks is the start time in clock ticks since boot (proc(5), stat field 22).
	StartTicks uint64 `json:"start_ticks"`
}

// Identify reads the identity of a running process.
func Identify(pid int) (Identity, error) {
	s, err := readStat(pid)
	switch {
	case err != nil:
		return Identity{}, err
	case s.state == 'Z':
		return Identity{}, fmt.Errorf("process %d has ended: %w", pid, os.ErrProcessDone)
	}
	return Identity{PID: pid, StartTicks: s.start}, nil
}

// Alive reports whether this very process still runs.
func (id Identity) Alive() bool {
	if id.PID <= 0 {
		return false
	}
	now, err := Identify(id.PID)
	return err == nil && now == id
}

// End asks the process to stop, waits for grace, then kills it; it returns
// when the process has gone or ctx ends. A process that has gone already, or
// whose PID is another's by now, is no error.
func (id Identity) End(ctx context.Context, grace time.Duration) error {
	if !id.Alive() {
		return nil
	}
	if err := syscall.Kill(id.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end process %d: %w", id.PID, err)
	}
	killAt := time.Now().Add(grace)
	killed := false
	for id.Alive() {
		if !killed && time.Now().After(killAt) {
			if err := syscall.Kill(id.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d: %w", id.PID, err)
			}
			killed = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d has not ended: %w", id.PID, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}
