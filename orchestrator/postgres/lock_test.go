package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLock(t *testing.T) {
	for as, want := range map[User]string{
		UserOrchestrator: "another orchestrator (process %d): stop that one, or choose another folder with --data",
		UserRestore:      "a restore (process %d): wait until it has ended, or choose another folder with --data",
		UserBackup:       "a backup (process %d): wait until it has ended",
	} {
		dir := filepath.Join(t.TempDir(), "a", "b")
		release, err := Lock(dir, as)
		require.NoError(t, err)
		_, err = Lock(dir, UserOrchestrator)
		require.ErrorIs(t, err, ErrInUse)
		require.ErrorContains(t, err, fmt.Sprintf("data folder %s is in use by "+want, dir, os.Getpid()))
		release()
		release, err = Lock(dir, UserBackup)
		require.NoError(t, err, "after %s", as)
		release()
	}

	// What the file held before, which is longer, does not show.
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, lockFile), []byte("4194304\norchestrator\n and more\n"), 0o644))
	release, err := Lock(dir, UserBackup)
	require.NoError(t, err)
	defer release()
	_, err = Lock(dir, UserOrchestrator)
	require.ErrorContains(t, err, fmt.Sprintf("a backup (process %d): wait", os.Getpid()))

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err = Lock(filepath.Join(file, "x"), UserBackup)
	require.ErrorContains(t, err, "not a directory")
}

// Whoever locks a file that is being removed does not believe that it has the
// folder: one at a time holds it, also where holders take the file away.
func TestLockThatIsRemoved(t *testing.T) {
	dir := t.TempDir()
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				release, err := Lock(dir, UserRestore)
				if err != nil {
					continue
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the folder", n)
				}
				inside.Add(-1)
				if err := RemoveLock(dir); err != nil {
					t.Error(err)
				}
				release()
			}
		})
	}
	wg.Wait()
}

// FuzzHolderOf: of the lock's file, only a number reaches the error.
func FuzzHolderOf(f *testing.F) {
	f.Add([]byte("4711\nbackup\n"))
	f.Add([]byte("4711\n"))
	f.Add([]byte(""))
	f.Add([]byte("\x1b[2J\nrestore"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text := holderOf(b)
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) || len(text) > 300 {
			t.Fatalf("%q", text)
		}
	})
}
