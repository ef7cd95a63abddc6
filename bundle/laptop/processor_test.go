package laptop

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProcessor: what needs a newer processor than the first ones of x86-64 is in no package,
// whether in Go, in C++ or of PostgreSQL.
func TestProcessor(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("programs of x86-64")
	}
	program := func(from string, change func(text []byte)) string {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		change(text)
		to := filepath.Join(t.TempDir(), "program")
		require.NoError(t, os.WriteFile(to, text, 0o755))
		return to
	}
	inGo := func(level string) string {
		own, err := os.Executable()
		require.NoError(t, err)
		return program(own, func(text []byte) {
			setting := []byte("\tGOAMD64=v1\n")
			require.True(t, bytes.Contains(text, setting))
			copy(text, bytes.ReplaceAll(text, setting, []byte("\tGOAMD64="+level+"\n"))) // the text of this test, too
		})
	}
	const true = "/bin/true"
	inC := func(levels byte) string {
		f, err := elf.Open(true)
		require.NoError(t, err)
		defer f.Close()
		s := f.Section(".note.gnu.property")
		require.NotNil(t, s)
		note, err := s.Data()
		require.NoError(t, err)
		at := bytes.Index(note, []byte{0x02, 0x80, 0x00, 0xc0, 4, 0, 0, 0})
		require.Positive(t, at)
		return program(true, func(text []byte) { text[s.Offset+uint64(at)+8] = levels })
	}
	for name, c := range map[string]struct{ file, want string }{
		"Go, v1":      {inGo("v1"), ""},
		"Go, v3":      {inGo("v3"), "a/program: was built for a processor of x86-64-v3, expected to run on any x86-64"},
		"C, as it is": {true, ""},
		"C, v2":       {inC(1 | 2), "a/program: needs a processor of x86-64-v2, expected to run on any x86-64"},
		"C, v4":       {inC(1 | 2 | 4 | 8), "a/program: needs a processor of x86-64-v4"},
	} {
		files := tree{}
		require.NoError(t, files.add("a/program", c.file), name)
		err := files.fitsAnyProcessor()
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
		}
	}
}

// TestNotes: notes that are cut off, or of another kind, are no programs' need of a processor.
func TestNotes(t *testing.T) {
	note := []byte{4, 0, 0, 0, 32, 0, 0, 0, 5, 0, 0, 0, 'G', 'N', 'U', 0,
		0x02, 0x00, 0x00, 0xc0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, // IBT and SHSTK
		0x02, 0x80, 0x00, 0xc0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}
	got, err := levelsNeeded(note)
	require.NoError(t, err)
	require.Equal(t, uint32(3), got)
	got, err = levelsNeeded(append(bytes.Clone(note), note...))
	require.NoError(t, err)
	require.Equal(t, uint32(3), got)
	for n := 1; n < len(note); n++ {
		_, err := levelsNeeded(note[:n])
		require.Error(t, err, n)
	}
	other := bytes.Clone(note)
	other[8] = 1
	got, err = levelsNeeded(other)
	require.NoError(t, err)
	require.Zero(t, got)
	other = bytes.Clone(note)
	other[20] = 200
	_, err = levelsNeeded(other)
	require.ErrorContains(t, err, "cut off")
}
