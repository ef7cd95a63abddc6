package lab

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A lab whose state cannot be read is named before another is brought up, and refused
// only where it is the one to be brought up.
func TestSweepNamesDamagedLabs(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "other"), 0o755))
	path := filepath.Join(dir, "other", "lab.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o644))
	want := `the state of lab "other" cannot be read: ` + path + `: unexpected end of JSON input; remove the lab with 'linktrial lab down --name other'`

	var out bytes.Buffer
	_, err := sweepLabs(t.Context(), &out, dir, "lab")
	require.NoError(t, err)
	require.Equal(t, "linktrial: "+want+"\n", out.String())

	out.Reset()
	_, err = sweepLabs(t.Context(), &out, dir, "other")
	require.EqualError(t, err, want)
	require.Empty(t, out.String())

	require.EqualError(t, removeLab(t.Context(), &out, dir, "lab"), `no lab "lab" is up`)
}
