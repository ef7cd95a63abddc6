package trust

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is no file of keys is refused by its kind or its size, without reading it whole
// or waiting for a writer.
func TestFilesOfKeysAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err := Open(Config{File: path})
	require.EqualError(t, err, "trusted keys: "+path+" is a named pipe, expected a regular file")

	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 100<<30))
	_, err = Open(Config{File: path})
	require.EqualError(t, err, "trusted keys: "+path+" is 100 GiB long, expected at most 1 MiB")
}
