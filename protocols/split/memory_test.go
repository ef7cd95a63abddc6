package main

import (
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// memoryVariable makes the test's binary the driver, which tells at the Unix socket of this
// name what it holds.
const memoryVariable = "LINKTRIAL_TEST_SPLIT_MEMORY"

func TestMain(m *testing.M) {
	if path := os.Getenv(memoryVariable); path != "" {
		if err := tellMemory(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		main()
	}
	os.Exit(m.Run())
}

// memory is what a driver has in use: bytes of reachable objects and of stacks, and goroutines.
type memory struct {
	objects, stacks int64
	goroutines      int
}

// tellMemory answers each connection with what this process has in use.
func tellMemory(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // a sync.Pool keeps what is in it over one collection
			runtime.ReadMemStats(&m)
			fmt.Fprintln(c, m.HeapAlloc, m.StackInuse, runtime.NumGoroutine())
			c.Close()
		}
	}()
	return nil
}

// inUse is what the driver at a socket of tellMemory answers.
func inUse(tb testing.TB, path string) (m memory) {
	tb.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	if err == nil {
		_, err = fmt.Sscan(string(b), &m.objects, &m.stacks, &m.goroutines)
	}
	if err != nil {
		tb.Fatalf("%q: %v", b, err)
	}
	return m
}

// TestMemory: a connection that is full costs the relay at most 64 KiB beyond its
// buffers, and one that has ended nothing.
func TestMemory(t *testing.T) {
	const connections, buffer, most, rounds = 200, 16 << 10, 64 << 10, 8
	// What may stay of all connections that have ended: about 80 bytes for each.
	const kept = 128 << 10
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	told := filepath.Join(t.TempDir(), "memory")
	r := newRoad(t, 0)
	var server net.Listener
	enter(t, r.server, func() (err error) {
		server, err = net.Listen("tcp", serverEnd+":7001")
		return err
	})
	defer server.Close()
	t.Setenv(memoryVariable, told)
	relay := start(t, r.middle, program, &contract.Parameters{Role: contract.RoleRelay, Local: contract.Endpoint{Address: middleNear, Port: 7002},
		Remote: contract.Endpoint{Address: serverEnd, Port: 7001}, Options: map[string]any{"buffer": buffer}})
	round := func() (held memory) {
		var open []net.Conn
		for range connections {
			var c net.Conn
			enter(t, r.client, func() (err error) {
				c, err = net.Dial("tcp", middleNear+":7002")
				return err
			})
			s, err := server.Accept()
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c, s)
		}
		var filling sync.WaitGroup
		for _, c := range open { // both directions wait for a reader
			filling.Go(func() {
				_ = c.SetWriteDeadline(time.Now().Add(time.Second))
				_, _ = c.Write(make([]byte, 1<<20))
			})
		}
		filling.Wait()
		held = inUse(t, told)
		for _, c := range open {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
		return held
	}
	idle := sockets(t, relay)
	before := inUse(t, told)
	// settled is the bytes of objects when the relay has ended every connection, and they
	// are at most so many or a minute has passed.
	settled := func(expected int64) int64 {
		for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			open, now := sockets(t, relay), inUse(t, told)
			ended := open <= idle && now.goroutines <= before.goroutines
			if late := time.Now().After(until); ended && (late || now.objects <= expected) {
				return now.objects
			} else if late {
				t.Fatalf("a minute after all connections have ended the relay holds %d sockets and %d goroutines, expected %d and %d", open, now.goroutines, idle, before.goroutines)
			}
		}
	}
	full := round()
	each := (full.objects + full.stacks - before.objects - before.stacks) / connections
	t.Logf("%d full connections: %d KiB each, of which their buffers are %d KiB", connections, each>>10, 2*buffer>>10)
	if each > 2*buffer+most {
		t.Errorf("%d bytes for each connection, expected at most %d beyond the buffers' %d", each, most, 2*buffer)
	}
	if each < 2*buffer {
		t.Errorf("%d bytes for each connection, expected at least the buffers' %d: the test tells nothing", each, 2*buffer)
	}
	// The first round leaves what Go keeps for as many goroutines again.
	first := settled(math.MaxInt64)
	for range rounds {
		round()
		settled(math.MaxInt64)
	}
	last := settled(first + kept)
	t.Logf("in use before %d KiB, after %d connections %d KiB, after %d times as many again %d KiB", before.objects>>10, connections, first>>10, rounds, last>>10)
	if last > first+kept {
		t.Errorf("the relay grows with the number of connections that have ended: from %d to %d bytes, expected at most %d more", first, last, kept)
	}
}

func enter(tb testing.TB, ns *os.File, f func() error) {
	tb.Helper()
	if err := process.InNamespace(fmt.Sprintf("/proc/self/fd/%d", ns.Fd()), f); err != nil {
		tb.Fatal(err)
	}
}

// sockets is how many sockets a process has open.
func sockets(tb testing.TB, s *started) (n int) {
	tb.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
