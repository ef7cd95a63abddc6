package netns

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/process"
)

// One lab whose state cannot be read keeps no other from being listed and removed. It
// is named with what is wrong and what to do, and stays as it is.
func TestDamagedLabs(t *testing.T) {
	dir := t.TempDir()
	gone := process.Identity{PID: 1 << 30, StartTicks: 1}
	left := State{Name: "left", Owner: gone}
	require.NoError(t, left.save(dir))
	self, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	up := State{Name: "up", Owner: self}
	require.NoError(t, up.save(dir))
	for name, harm := range map[string]func(path string) error{
		"cut":  func(path string) error { return os.WriteFile(path, []byte(`{"name": "cu`), 0o644) },
		"huge": func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<40)) },
		"pipe": func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"A b":  func(path string) error { return os.WriteFile(path, []byte(`{}`), 0o644) },
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		require.NoError(t, harm(statePath(dir, name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "zfile"), nil, 0o644))

	labs, damaged, err := List(dir)
	require.NoError(t, err)
	require.Len(t, labs, 2)
	path := func(name string) string { return statePath(dir, name) }
	want := []string{
		`the state of lab "A b" cannot be read: ` + path("A b") + `: it is of lab "", expected lower-case letters, digits and hyphens as its folder has them; no lab has such a name: remove ` + filepath.Join(dir, "A b"),
		`the state of lab "cut" cannot be read: ` + path("cut") + `: unexpected end of JSON input; remove the lab with 'linktrial lab down --name cut'`,
		`the state of lab "huge" cannot be read: ` + path("huge") + ` is 1024 GiB long, expected at most 1 MiB; remove the lab with 'linktrial lab down --name huge'`,
		`the state of lab "pipe" cannot be read: ` + path("pipe") + ` is a named pipe, expected a regular file; remove the lab with 'linktrial lab down --name pipe'`,
		`the state of lab "zfile" cannot be read: open ` + path("zfile") + `: not a directory; remove the lab with 'linktrial lab down --name zfile'`,
	}
	require.Len(t, damaged, len(want))
	for i, d := range damaged {
		require.EqualError(t, d, want[i])
	}

	removed, damaged, err := Sweep(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []string{"left"}, removed)
	require.Len(t, damaged, len(want))
	_, err = Load(dir, "up")
	require.NoError(t, err)
	_, err = os.Lstat(path("cut"))
	require.NoError(t, err, "a sweep removes no lab that it cannot read")
}

// A lab that cannot be read is removed by its name: its namespaces and its folder, and
// nothing of a lab whose name only begins as its does.
func TestRemoveDamaged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: the lab makes network namespaces")
	}
	dir := t.TempDir()
	name := labName() + "d"
	own := []string{controlNamespace(name), nodeNamespace(name, "client"), nodeNamespace(name, "relay"), nodeNamespace(name, "server")}
	other := nodeNamespace(name+"-b", "client")
	for _, ns := range append(own, other) {
		require.NoError(t, MakeNamespace(ns))
		t.Cleanup(func() { _ = RemoveNamespace(ns) })
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	require.NoError(t, os.WriteFile(statePath(dir, name), nil, 0o644))

	_, err := Load(dir, name)
	var d *Damaged
	require.ErrorAs(t, err, &d)
	require.NoError(t, d.Remove(t.Context()))
	for _, ns := range own {
		_, err := os.Stat(NamespacePath(ns))
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	_, err = os.Stat(NamespacePath(other))
	require.NoError(t, err)
	_, err = Load(dir, name)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
