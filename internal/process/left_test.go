package process

import (
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Each of several children that end at the same time leaves a process in a session of
// its own and without an environment: each is found as that child's, and ended.
func TestEndLeftOfSeveral(t *testing.T) {
	require.NoError(t, Adopt())
	var own unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_LOCKS, &own))
	const children = 12
	var all sync.WaitGroup
	for i := range children {
		all.Go(func() {
			says, first := i%3 > 0, []string{"1", "2", "3"}[i%3]
			cmd := exec.Command("/bin/sh", "-c", `if [ "$0" != 1 ]; then env -i /usr/bin/setsid /bin/sleep 360"$0" & fi; sleep 0.2`, first)
			if err := Start(cmd); err != nil {
				t.Error(err)
				return
			}
			pid := cmd.Process.Pid
			defer Forget(pid)
			defer cmd.Wait()
			var info unix.Siginfo
			for unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil) != nil {
			}
			left := EndLeft(pid)
			if !says && len(left) > 0 || says && (len(left) != 1 || !strings.Contains(left[0], "sleep 360"+first+" ")) {
				t.Errorf("child %d has left %q", i, left)
			}
		})
	}
	all.Wait()
	var after unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_LOCKS, &after))
	require.Equal(t, own, after)
}
