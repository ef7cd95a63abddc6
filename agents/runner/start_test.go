package runner_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

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
	script(t, dir, "unknown", "name: unknown\ntitle: T\nsummary: s\nversion: \"1\"\ncontract: 2\ncommand: [no-such-program-anywhere]\nnetwork: tcp\n", "")
	script(t, dir, "sound", "", "exit 0")
	r := runner.New(runner.Config{Dir: dir})
	p := &contract.Parameters{Role: contract.RoleClient}
	for _, name := range []string{"absent", "plain", "garbage", "unknown"} {
		_, err := r.Start(t.Context(), name, p, nil)
		require.ErrorIs(t, err, executor.ErrBrokenDriver, name)
		require.NotErrorIs(t, err, executor.ErrNoDriver, name)
	}

	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 3
	_, err := r.Start(t.Context(), "sound", p, nil) // what a first start opens for good is open
	require.NoError(t, err)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, err = r.Start(t.Context(), "sound", p, nil)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.ErrorIs(t, err, syscall.EMFILE)
	require.NotErrorIs(t, err, executor.ErrBrokenDriver)
	require.NotErrorIs(t, err, executor.ErrNoDriver)
}

// A driver has the beginning of the payload with its parameters.
func TestGive(t *testing.T) {
	p := &contract.Parameters{Role: contract.RoleClient}
	doc, err := json.Marshal(p)
	require.NoError(t, err)
	doc = append(doc, '\n')
	for _, size := range []int64{-1, 0, 10, 100_000} {
		var payload io.Reader
		want := doc
		if size >= 0 {
			text := strings.Repeat("0123456789a", int(size))[:size]
			payload, want = strings.NewReader(text), append(doc[:len(doc):len(doc)], text...)
		}
		var w writes
		require.NoError(t, runner.Give(&w, p, payload))
		require.Equal(t, string(want), strings.Join(w, ""))
		require.Len(t, w[0], min(len(want), 64<<10), "size %d", size)
	}
	failed := errors.New("cannot be read")
	require.ErrorIs(t, runner.Give(new(writes), p, iotest.ErrReader(failed)), failed)
}

type writes []string

func (w *writes) Write(b []byte) (int, error) {
	*w = append(*w, string(b))
	return len(b), nil
}
