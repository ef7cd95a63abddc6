package evidence

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"linktrial/internal/faultdisk"
	"linktrial/internal/sshsig"
	"linktrial/internal/testkind"
)

func bundle(t *testing.T) *Bundle {
	t.Helper()
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	key, err := ssh.NewPublicKey(private.Public())
	require.NoError(t, err)
	return &Bundle{
		Evidence: Evidence{Campaign: "first", Plan: "a\nplan", Version: "1", Complete: true, Missing: []string{"one\n- two\x1b[0m"}, Runs: []Run{{ID: "first-1", State: "completed", Nodes: []Node{{Name: "client", Records: 1, SamplesDeleted: true}}}}},
		Name:     "Spring", Key: key, Fingerprint: "f1",
		Sign: func(b []byte) (string, error) { return sshsig.Sign(private, sshsig.Evidence, b) },
	}
}

var packed = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// write writes a bag into a folder of its own.
func write(t *testing.T, x *Bundle) (content []byte, out Written) {
	t.Helper()
	at := filepath.Join(t.TempDir(), "bag.zip")
	w, err := NewWriter(t.Context(), at, "first", packed)
	require.NoError(t, err)
	defer w.Discard()
	require.NoError(t, w.AddBytes(Plan, "the plan", []byte("name: a\n")))
	out, err = w.Finish(x)
	require.NoError(t, err)
	content, err = os.ReadFile(at)
	require.NoError(t, err)
	return content, out
}

// The same evidence is the same file, byte for byte.
func TestSameBag(t *testing.T) {
	a, out := write(t, bundle(t))
	b, _ := write(t, bundle(t))
	require.Equal(t, a, b)
	require.EqualValues(t, len(a), out.Bytes)
	require.Equal(t, 3, out.Files, "plan, index, metadata")
}

// Texts of people begin no line of their own.
func TestTextsOfPeople(t *testing.T) {
	x := bundle(t)
	x.Evidence.Packed = packed
	require.Contains(t, info(x), "Internal-Sender-Description: Plan a plan, campaign Spring\n")
	require.Contains(t, readme(x), "- one - two [0m\n")
	require.Contains(t, readme(x), "The samples of this run were deleted")
}

func TestNamesInBags(t *testing.T) {
	w, err := NewWriter(t.Context(), filepath.Join(t.TempDir(), "bag.zip"), "first", packed)
	require.NoError(t, err)
	defer w.Discard()
	require.NoError(t, w.AddBytes("data/a.txt", "", nil))
	for name, want := range map[string]string{
		"../a": "cannot be the name", "/a": "cannot be the name", "data/../../a": "cannot be the name", `data\a`: "cannot be the name", "data/a b": "cannot be the name", "data/a\nb": "cannot be the name",
		"data/C:": "cannot be the name", "data/ü": "cannot be the name", "": "cannot be the name", "data/.a": "begins or ends with a dot", "data/a.": "begins or ends with a dot", "data/A.TXT": "twice",
	} {
		require.ErrorContains(t, w.AddBytes(name, "", nil), want, name)
	}
}

// What ends before its end leaves nothing in the folder, and what was there as it was.
func TestHalfBags(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "bag.zip")
	require.NoError(t, os.WriteFile(at, []byte("the old one"), 0o600))
	full := errors.New("no space left on device")
	x := bundle(t)
	for name, half := range map[string]func(*Writer, context.CancelFunc) error{
		"a file that cannot be read": func(w *Writer, _ context.CancelFunc) error {
			return w.Add("data/a", "", func(io.Writer) error { return full })
		},
		"a caller who leaves": func(w *Writer, cancel context.CancelFunc) error {
			return w.Add("data/a", "", func(to io.Writer) error {
				cancel()
				_, err := io.Copy(to, strings.NewReader("a"))
				return err
			})
		},
		"a key that does not sign": func(w *Writer, _ context.CancelFunc) error {
			y := *x
			y.Sign = func([]byte) (string, error) { return "", full }
			return finish(w, &y)
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		w, err := NewWriter(ctx, at, "first", packed)
		require.NoError(t, err)
		require.Error(t, half(w, cancel), name)
		w.Discard()
		cancel()
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, 1, name)
		b, err := os.ReadFile(at)
		require.NoError(t, err)
		require.Equal(t, "the old one", string(b), name)
	}
}

var _ = testkind.OfPackage(testkind.Exact, "mounts a file system, whose answers no load changes")

// A disk that fills up leaves no half file.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	dir := t.TempDir()
	disk, err := faultdisk.Mount(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, disk.Unmount()) }()
	at := filepath.Join(dir, "bag.zip")
	w, err := NewWriter(t.Context(), at, "first", packed)
	require.NoError(t, err)
	defer w.Discard()
	require.NoError(t, w.AddBytes(Plan, "", []byte("name: a\n")))
	disk.Fail(faultdisk.Failure{Full: true})
	require.ErrorIs(t, finish(w, bundle(t)), syscall.ENOSPC)
	w.Discard()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func finish(w *Writer, x *Bundle) error {
	_, err := w.Finish(x)
	return err
}
