package runner_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/agents/runner"
	"linktrial/executor"
	"linktrial/protocols/contract"
)

// A program that cannot be executed is its driver's fault; open files that the node has
// not left are not.
func TestWhoseFaultANoStartIs(t *testing.T) {
	dir := t.TempDir()
	script(t, dir, "absent", "", "")
	script(t, dir, "plain", "", "exit 0")
	require.NoError(t, os.Chmod(filepath.Join(dir, "plain", "run"), 0o644))
	script(t, dir, "garbage", "", "exit 0")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "garbage", "run"), []byte("\x7fELF"), 0o755))
	script(t, dir, "unknown", "name: unknown\ntitle: T\nsummary: s\nversion: \"1\"\ncontract: 1\ncommand: [no-such-program-anywhere]\nnetwork: tcp\n", "")
	script(t, dir, "sound", "", "exit 0")
	r := runner.New(runner.Config{Dir: dir})
	p := &contract.Parameters{Role: contract.RoleClient}
	for _, name := range []string{"absent", "plain", "garbage", "unknown"} {
		_, err := r.Start(t.Context(), name, p)
		require.ErrorIs(t, err, executor.ErrBrokenDriver, name)
		require.NotErrorIs(t, err, executor.ErrNoDriver, name)
	}

	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 3
	_, err := r.Start(t.Context(), "sound", p) // what a first start opens for good is open
	require.NoError(t, err)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, err = r.Start(t.Context(), "sound", p)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.ErrorIs(t, err, syscall.EMFILE)
	require.NotErrorIs(t, err, executor.ErrBrokenDriver)
	require.NotErrorIs(t, err, executor.ErrNoDriver)
}
