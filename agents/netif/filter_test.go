package netif

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/stretchr/testify/require"

	"linktrial/agents/radioonly"
	"linktrial/internal/namespace"
	"linktrial/internal/notify"
	"linktrial/internal/process"
)

// A change of the packet filter is a fault of the moment, unless the agent has made it
// itself, or another one has for its drivers, as where they are held to the radio.
func TestFilterChange(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	ns, err := namespace.Unnamed()
	require.NoError(t, err)
	defer ns.Close()
	var notices *os.File
	require.NoError(t, process.InNamespace(fmt.Sprintf("/proc/self/fd/%d", ns.Fd()), func() (err error) {
		notices, err = subscribeFilter()
		return err
	}))
	require.NotNil(t, notices, "this kernel has no nf_tables")
	c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
	require.NoError(t, err)
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "other"})
	require.NoError(t, c.Flush())
	nobody, everybody := func(int) bool { return false }, func(int, string) bool { return true }
	stranger := func(int, string) bool { return false }
	all := readChange(t, notices)
	require.Regexp(t, `^the packet filter of this node was changed \(by "[^"]+", thread \d+\): change it before a run$`, new(generation).changes(all, author{nobody, everybody})[0])
	for initial, want := range map[bool]int{true: 0, false: 1} { // the numbers of a container are others
		if initial && !initialProcesses() {
			continue // see TestAuthor
		}
		require.Len(t, new(generation).changes(all, author{agents(initial).self, stranger}), want)
	}

	// Another agent of the node holds its drivers to its radio.
	drivers := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: radioonly.TablePrefix + "7"})
	c.AddChain(&nftables.Chain{Name: "out", Table: drivers})
	require.NoError(t, c.Flush())
	all = readChange(t, notices)
	require.Empty(t, new(generation).changes(all, author{nobody, agents(initialProcesses()).program}))
	require.Len(t, new(generation).changes(all, author{nobody, stranger}), 1, "by another program")
	c.AddChain(&nftables.Chain{Name: "out", Table: drivers})
	c.AddChain(&nftables.Chain{Name: "in", Table: table})
	require.NoError(t, c.Flush())
	both := readChange(t, notices)
	require.Len(t, new(generation).changes(append(all, both...), author{nobody, everybody}), 1, "of another table as well")

	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() {
		followFilter(ctx, notices, slog.New(slog.DiscardHandler), func(what string) {
			if initialProcesses() {
				t.Error("own change: ", what)
			}
		})
	})
	c.DelTable(table)
	require.NoError(t, c.Flush())
	cancel()
	following.Wait()
	followFilter(t.Context(), nil, nil, nil) // of a kernel without nf_tables

	w := &Watch{read: func(int, bool) State { return State{There: true, Up: true, Carrier: true} }, want: expected{radio: &Radio{Device: "radio0"}}, changed: new(notify.Notifier)}
	before := time.Now()
	w.happened(someChange)
	fault, _, _ := w.Since(before)
	require.Equal(t, someChange, fault)
	fault, _, _ = w.Since(time.Now())
	require.Empty(t, fault)
	fault, _ = w.State()
	require.Empty(t, fault)
}

// Where a notice has the numbers that this process sees, numbers tell who it was; elsewhere
// a name alone does.
func TestAuthor(t *testing.T) {
	other := exec.Command("sleep", "60")
	require.NoError(t, other.Start())
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()
	comm, err := os.ReadFile("/proc/self/comm")
	require.NoError(t, err)
	own := strings.TrimSpace(string(comm))
	machine, container := agents(true), agents(false)
	require.True(t, machine.self(os.Getpid()))
	require.True(t, machine.program(os.Getpid(), "another name"))
	require.False(t, machine.self(other.Process.Pid))
	require.False(t, machine.program(other.Process.Pid, own))
	require.False(t, container.self(os.Getpid()))
	require.True(t, container.program(other.Process.Pid, own))
	require.False(t, container.program(os.Getpid(), "another name"))
}

// readChange reads the kernel's messages of one change.
func readChange(t *testing.T, notices *os.File) (all []byte) {
	t.Helper()
	text := make([]byte, 64<<10)
	for {
		n, err := notices.Read(text)
		require.NoError(t, err)
		all = append(all, text[:n]...)
		messages, err := syscall.ParseNetlinkMessage(text[:n])
		require.NoError(t, err)
		if messages[len(messages)-1].Header.Type == newGeneration {
			return all
		}
	}
}

// What is no whole message of the kernel is a change all the same, and never a panic.
func FuzzFilterChanges(f *testing.F) {
	f.Add([]byte{20, 0, 0, 0, 15, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{1})
	nobody, stranger := func(int) bool { return false }, func(int, string) bool { return false }
	f.Fuzz(func(_ *testing.T, b []byte) { new(generation).changes(b, author{nobody, stranger}) })
}
