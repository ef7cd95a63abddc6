package process

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain doubles as the parent that is killed in TestChildDiesWithParent.
func TestMain(m *testing.M) {
	if os.Getenv("PROCESS_TEST_PARENT") == "1" {
		cmd := exec.Command("sleep", "300")
		if err := Start(cmd); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(2)
		}
		id, err := Identify(cmd.Process.Pid)
		if err != nil {
			os.Exit(3)
		}
		os.Stdout.WriteString(strings.Join([]string{itoa(uint64(id.PID)), itoa(id.StartTicks)}, " ") + "\n")
		select {}
	}
	os.Exit(m.Run())
}

func itoa(n uint64) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

func TestChildDiesWithParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "PROCESS_TEST_PARENT=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	var child Identity
	f := strings.Fields(string(buf[:n]))
	for _, c := range f[0] {
		child.PID = child.PID*10 + int(c-'0')
	}
	for _, c := range f[1] {
		child.StartTicks = child.StartTicks*10 + uint64(c-'0')
	}
	if !child.Alive() {
		t.Fatal("the child does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait()
	for deadline := time.Now().Add(10 * time.Second); child.Alive(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			syscall.Kill(child.PID, syscall.SIGKILL)
			t.Fatal("the child outlived its killed parent")
		}
	}
}

func TestEnd(t *testing.T) {
	for name, script := range map[string]string{
		"polite":   "echo ready; sleep 300",
		"stubborn": "trap '' TERM; echo ready; sleep 300 & wait; sleep 300",
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", script)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := Start(cmd); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
				t.Fatal(err)
			}
			go cmd.Wait()
			id, err := Identify(cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := id.End(ctx, 200*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if id.Alive() {
				t.Error("the process still runs")
			}
			syscall.Kill(-id.PID, syscall.SIGKILL) // the stubborn shell's own child, in its group
		})
	}
}

func TestEndPassesOverAnotherProcessOfThatPID(t *testing.T) {
	me, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	other := me
	other.StartTicks++
	if other.Alive() {
		t.Fatal("a process with another start time counts as alive")
	}
	if err := other.End(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
}

func TestSupervisorStartsAgainAndStops(t *testing.T) {
	starts := make(chan int, 10)
	s, err := Supervise("sleeper", slog.New(slog.DiscardHandler), func() (*exec.Cmd, error) {
		cmd := exec.Command("sleep", "300")
		if err := Start(cmd); err != nil {
			return nil, err
		}
		starts <- cmd.Process.Pid
		return cmd, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	first := <-starts
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var second int
	select {
	case second = <-starts:
	case <-time.After(20 * time.Second):
		t.Fatal("the killed child was not started again")
	}
	s.Stop(context.Background(), 5*time.Second)
	if _, err := Identify(second); err == nil {
		t.Error("the child still runs after Stop")
	}
}

// A child that ends again and again is not started for ever, and how it ended is known.
func TestSupervisorGivesUp(t *testing.T) {
	states := make(chan State, 20)
	starts := 0
	s, err := Supervision{
		Name: "failer", Log: slog.New(slog.DiscardHandler), MaxEnds: 3,
		Start: func(context.Context) (*exec.Cmd, error) {
			if starts++; starts == 2 {
				return nil, errors.New("cannot be started")
			}
			cmd := exec.Command("sh", "-c", "exit 3")
			return cmd, Start(cmd)
		},
		LastWords: func() string { return "no such device" },
		Changed:   func(st State) { states <- st },
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background(), time.Second)
	select {
	case <-s.Failed():
	case <-time.After(20 * time.Second):
		t.Fatal("it is started for ever")
	}
	if err := s.Failure(); err == nil || err.Error() != "failer: it ended 3 times within a minute and is not started again; the last time: exit status 3: no such device" {
		t.Errorf("failure %v", err)
	}
	if st := s.State(); starts != 3 || st.Restarts != 1 || st.Since.IsZero() || !st.Failed {
		t.Errorf("%d starts, %+v", starts, st)
	}
	if first := <-states; first.Since.IsZero() || first.Reason != "exit status 3: no such device" || first.Failed {
		t.Errorf("first %+v", first)
	}
	if second := <-states; second.Since.IsZero() || second.Reason != "cannot be started" {
		t.Errorf("second %+v", second)
	}
}

// The first thread is what /proc shows of a process: nothing that changes a
// thread may run on it.
func TestOnThreadIsNeverTheFirst(t *testing.T) {
	for range 200 {
		tid := make(chan int)
		OnThread(func() { tid <- unix.Gettid() })
		if got := <-tid; got == os.Getpid() {
			t.Fatal("on the first thread")
		}
	}
}
