package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// TestMemory: a connection that is full costs the relay at most 64 KiB beyond its
// buffers, and one that has ended nothing.
func TestMemory(t *testing.T) {
	const connections, buffer, most, rounds = 200, 16 << 10, 64 << 10, 8
	split, _ := programs(t)
	r := newRoad(t, 0)
	var server net.Listener
	enter(t, r.server, func() (err error) {
		server, err = net.Listen("tcp", serverEnd+":7001")
		return err
	})
	defer server.Close()
	relay := start(t, r.middle, split, &contract.Parameters{Role: contract.RoleRelay, Local: contract.Endpoint{Address: middleNear, Port: 7002},
		Remote: contract.Endpoint{Address: serverEnd, Port: 7001}, Options: map[string]any{"buffer": buffer}})
	round := func() (held int64) {
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
		held = resident(t, relay)
		for _, c := range open {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
		return held
	}
	before, idle := resident(t, relay), sockets(t, relay)
	// A round begins when the relay has ended the former one's connections: those that it
	// still holds need not be given back.
	ended := func() {
		for until := time.Now().Add(time.Minute); sockets(t, relay) > idle; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("the relay holds %d sockets a minute after all connections have ended, expected %d", sockets(t, relay), idle)
			}
		}
	}
	first := round()
	each := (first - before) / connections
	t.Logf("%d full connections: %d KiB each, of which their buffers are %d KiB", connections, each>>10, 2*buffer>>10)
	if each > 2*buffer+most {
		t.Errorf("%d bytes for each connection, expected at most %d beyond the buffers' %d", each, most, 2*buffer)
	}
	var last int64
	for range rounds {
		ended()
		last = round()
	}
	t.Logf("resident after them %d KiB, after %d times as many again %d KiB", first>>10, rounds, last>>10)
	// The collector lets the heap grow to twice what is in use, and what one round took may
	// lie beside the next one's: more than that in so many rounds is kept.
	if last > first+2*(first-before) {
		t.Errorf("the relay grows with the number of connections that have ended: from %d to %d bytes", first, last)
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

// resident is the memory of a process, in bytes.
func resident(tb testing.TB, s *started) int64 {
	tb.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			return n << 10
		}
	}
	tb.Fatal("no VmRSS")
	return 0
}
