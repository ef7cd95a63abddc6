package laptop

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// entry is a file of an archive.
type entry struct {
	header  tar.Header
	content string
}

// read reads the files of a tar, by place below the folder that they are all in.
func read(t *testing.T, in io.Reader, folder string) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		require.Equal(t, committed, h.ModTime.UTC(), h.Name)
		require.Equal(t, []any{0, 0, "root", "root"}, []any{h.Uid, h.Gid, h.Uname, h.Gname}, h.Name)
		if h.Typeflag == tar.TypeDir {
			require.EqualValues(t, 0o755, h.Mode, h.Name)
			continue
		}
		require.EqualValues(t, tar.TypeReg, h.Typeflag, h.Name)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		name, ok := strings.CutPrefix(path.Clean(h.Name), folder)
		require.True(t, ok, h.Name)
		out[name] = entry{*h, string(content)}
	}
}

func readDeb(t *testing.T, file string) map[string]entry {
	t.Helper()
	out, err := exec.Command("dpkg-deb", "--fsys-tarfile", file).Output()
	require.NoError(t, err)
	return read(t, bytes.NewReader(out), "usr/")
}

func readTar(t *testing.T, file, folder string) map[string]entry {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	return read(t, z, folder)
}

// with is a tree of the files of an archive.
func (t tree) with(files map[string]entry) tree {
	for name := range files {
		t[name] = file{}
	}
	return t
}
