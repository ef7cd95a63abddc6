package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A process between fork and exec has a copy of every open file of its parent.
func TestReleaseWithACopyOfTheFile(t *testing.T) {
	dir := t.TempDir()
	release, err := lock(dir)
	require.NoError(t, err)
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	copied := false
	for _, e := range fds {
		link := filepath.Join("/proc/self/fd", e.Name())
		if to, err := os.Readlink(link); err != nil || to != filepath.Join(dir, "lock") {
			continue
		}
		fd, err := strconv.Atoi(e.Name())
		require.NoError(t, err)
		fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		require.NoError(t, err)
		defer unix.Close(fd)
		copied = true
		break
	}
	require.True(t, copied)
	release()
	again, err := lock(dir)
	require.NoError(t, err)
	again()
}

// A state folder keeps its identity, by which the orchestrator knows where a run's journal
// is; what is damaged is not replaced by another one.
func TestFolderIdentity(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	first, err := folderIdentity(one)
	require.NoError(t, err)
	again, err := folderIdentity(one)
	require.NoError(t, err)
	require.Equal(t, first, again)
	other, err := folderIdentity(two)
	require.NoError(t, err)
	require.NotEqual(t, first, other)
	for _, damaged := range []string{"", first[1:], first[1:] + "/", first + first} {
		require.NoError(t, os.WriteFile(filepath.Join(one, "folder-id"), []byte(damaged), 0o600))
		_, err = folderIdentity(one)
		require.ErrorContains(t, err, "expected 26 letters and digits", damaged)
	}
}
