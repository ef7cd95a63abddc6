package runner_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/agents/runner"
	"linktrial/executor"
	"linktrial/protocols/contract"
)

// A driver that something stops and lets go on is known to have been stopped, and its
// end, while it is stopped, is known as any other.
func TestStops(t *testing.T) {
	dir := t.TempDir()
	script(t, dir, "waiting", "", "cat >/dev/null\necho $$\nexec sleep 600")
	p, err := runner.New(runner.Config{Dir: dir}).Start(t.Context(), "waiting", &contract.Parameters{Role: contract.RoleClient}, nil)
	require.NoError(t, err)
	defer p.Output().Close()
	line := make([]byte, 20)
	n, err := p.Output().Read(line)
	require.NoError(t, err)
	pid := 0
	for _, c := range line[:n-1] {
		pid = pid*10 + int(c-'0')
	}
	until := func(stops int, stopped bool) {
		t.Helper()
		limit := time.After(20 * time.Second)
		for {
			n, now, changed := p.Stops().State()
			if n == stops && now == stopped {
				return
			}
			select {
			case <-changed:
			case <-limit:
				t.Fatalf("stopped %d times, now %t; expected %d, %t", n, now, stops, stopped)
			}
		}
	}
	until(0, false)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	until(1, true)
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	until(1, false)
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT)) // of one that runs is none
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	until(2, true)
	p.Kill()
	<-p.Done()
	require.Equal(t, executor.Exit{Code: -1, Signal: "killed"}, p.Exit())
}
