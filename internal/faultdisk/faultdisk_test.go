package faultdisk

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func mounted(t *testing.T) (*Disk, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts a file system")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "before"), []byte("kept"), 0o644))
	d, err := Mount(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, Remove(dir)) })
	return d, dir
}

// Files are those of the folder, before, while and after the file system lies over it.
func TestMount(t *testing.T) {
	d, dir := mounted(t)
	b, err := os.ReadFile(filepath.Join(dir, "before"))
	require.NoError(t, err)
	require.Equal(t, "kept", string(b))
	large := bytes.Repeat([]byte("0123456789"), 100_000)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), large, 0o644))
	require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "renamed")))
	b, err = os.ReadFile(filepath.Join(dir, "renamed"))
	require.NoError(t, err)
	require.Equal(t, large, b)
	require.NoError(t, d.Unmount())
	b, err = os.ReadFile(filepath.Join(dir, "renamed"))
	require.NoError(t, err)
	require.Equal(t, large, b)
	require.NoError(t, Remove(dir), "no mount is no error")
	require.NoError(t, Remove(filepath.Join(dir, "nothing")))
}

// A child that held the device would be taken for the disk's server, and wait for itself.
func TestChildrenDoNotServe(t *testing.T) {
	mounted(t)
	out, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), " -> ")
	require.NotContains(t, string(out), "/dev/fuse")
}

// A full disk cuts a write short, and takes what is given back; when it is no longer
// full, everything works.
func TestFull(t *testing.T) {
	d, dir := mounted(t)
	reserve := filepath.Join(dir, "reserve")
	require.NoError(t, os.WriteFile(reserve, make([]byte, 1000), 0o644))
	f, err := os.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	defer f.Close()
	d.Fail(Failure{Full: true, RoomBytes: 10})
	size := func() int64 {
		info, err := f.Stat()
		require.NoError(t, err)
		return info.Size()
	}
	_, err = f.WriteAt(make([]byte, 100), 0)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.EqualValues(t, 10, size(), "half-written, as on a disk")
	require.NoError(t, os.Remove(reserve))
	_, err = f.WriteAt(make([]byte, 1001), 10)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.EqualValues(t, 1010, size())
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	require.Zero(t, st.Bavail)
	d.Fail(Failure{})
	_, err = f.WriteAt(make([]byte, 5000), 0)
	require.NoError(t, err)
}

// Overwriting takes no room, but for a disk that writes everything to a new place. Room
// that a file loses with a cut, or with its last name, is given back.
func TestFullOverwriting(t *testing.T) {
	d, dir := mounted(t)
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(path, make([]byte, 100), 0o644))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	d.Fail(Failure{Full: true, RoomBytes: 5})
	_, err = f.WriteAt(make([]byte, 100), 0)
	require.NoError(t, err, "nothing is longer than before")
	_, err = f.WriteAt(make([]byte, 20), 90)
	require.ErrorIs(t, err, unix.ENOSPC)
	info, err := f.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 105, info.Size(), "what there was, and the room")
	require.NoError(t, f.Truncate(50))
	require.NoError(t, os.Link(path, filepath.Join(dir, "second")))
	require.NoError(t, os.Remove(filepath.Join(dir, "second")), "the file has another name")
	_, err = f.WriteAt(make([]byte, 56), 50)
	require.ErrorIs(t, err, unix.ENOSPC, "55 bytes were given back")
	require.NoError(t, os.Rename(filepath.Join(dir, "before"), path), "f loses its last name")
	g, err := os.Create(filepath.Join(dir, "g"))
	require.NoError(t, err)
	defer g.Close()
	n, err := g.Write(make([]byte, 200))
	require.ErrorIs(t, err, unix.ENOSPC)
	require.Equal(t, 105, n)

	d.Fail(Failure{Full: true, CopyOnWrite: true})
	_, err = g.WriteAt(make([]byte, 10), 0)
	require.ErrorIs(t, err, unix.ENOSPC)
}

func TestError(t *testing.T) {
	d, dir := mounted(t)
	f, err := os.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	defer f.Close()
	d.Fail(Failure{Error: true})
	_, err = f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, unix.EIO)
	require.ErrorIs(t, f.Sync(), unix.EIO)
	_, err = os.ReadFile(filepath.Join(dir, "before"))
	require.ErrorIs(t, err, unix.EIO)
	require.ErrorIs(t, os.Remove(filepath.Join(dir, "before")), unix.EIO)
	d.Fail(Failure{})
	_, err = f.WriteAt([]byte("x"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
}

func TestSlow(t *testing.T) {
	d, dir := mounted(t)
	f, err := os.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	defer f.Close()
	d.Fail(Failure{Delay: 100 * time.Millisecond})
	began := time.Now()
	_, err = f.WriteAt([]byte("x"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond)
}
