package cxxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"linktrial/protocols/contract"
)

// CheckIdle: some time after its last transfer a server rests: no more than
// most wake-ups a second, of all its threads.
func CheckIdle(t *testing.T, d *Driver, most int) {
	port := FreePort(t)
	server := d.Serve(t, d.Parameters(contract.RoleServer, port))
	run(t, d, server, d.Parameters(contract.RoleClient, port))
	pid := server.cmd.Process.Pid
	var got int
	for begin := time.Now(); time.Since(begin) < Hang; {
		before := wakeUps(t, pid)
		time.Sleep(time.Second)
		if got = wakeUps(t, pid) - before; got <= most {
			t.Logf("%d wake-ups in a second, reached after %s", got, time.Since(begin).Round(100*time.Millisecond))
			// Rest must not cost the next one anything.
			p := d.Parameters(contract.RoleClient, port)
			p.Transfer.ID = strings.Repeat("f", 32)
			client, served := run(t, d, server, p)
			CheckTransfer(t, p, client, served)
			server.stop(t)
			return
		}
	}
	t.Errorf("still %d wake-ups a second, expected at most %d", got, most)
}

// wakeUps counts the voluntary context switches of a process's threads so far.
func wakeUps(t *testing.T, pid int) int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that ended
		}
		_, rest, _ := strings.Cut(string(b), "\nvoluntary_ctxt_switches:")
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		total += n
	}
	return total
}
