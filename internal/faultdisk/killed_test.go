package faultdisk

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestMain doubles as the process that mounts and is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("FAULTDISK_TEST_MOUNT"); dir != "" {
		if _, err := Mount(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("mounted")
		select {}
	}
	os.Exit(m.Run())
}

// What a killed process leaves mounted, the next one removes, and the files are there.
func TestRemoveAfterAKill(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts a file system")
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FAULTDISK_TEST_MOUNT="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "mounted\n", said)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644))
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	_, err = os.ReadFile(filepath.Join(dir, "f"))
	require.ErrorIs(t, err, unix.ENOTCONN)
	require.NoError(t, Remove(dir))
	b, err := os.ReadFile(filepath.Join(dir, "f"))
	require.NoError(t, err)
	require.Equal(t, "x", string(b))
}
