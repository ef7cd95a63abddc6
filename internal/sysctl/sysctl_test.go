package sysctl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree makes a folder with settings.
func tree(t *testing.T, values map[string]string) string {
	root := t.TempDir()
	for name, value := range values {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(value), 0o600))
	}
	return root
}

func TestRead(t *testing.T) {
	t.Parallel()
	// Some settings are there in the machine's own network namespace alone.
	got, err := Read(tree(t, map[string]string{"net/core/default_qdisc": "fq_codel\n", "net/core/somaxconn": "4096\n", "net/ipv4/tcp_rmem": "4096\t131072\t6291456\n", "net/ipv4/tcp_fastopen_key": "secret"}))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"net.core.default_qdisc": "fq_codel", "net.ipv4.tcp_rmem": "4096 131072 6291456"}, got)
	own, err := Read(Root)
	require.NoError(t, err)
	require.NotEmpty(t, own["net.ipv4.tcp_congestion_control"])
}

func TestKeep(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"net/ipv4/tcp_rmem": "4096\t131072\t6291456\n", "net/ipv4/tcp_sack": "1\n", "net/ipv4/tcp_available_congestion_control": "reno\n", "net/ipv4/tcp_fastopen_key": "secret\n"})
	k, err := Keep(root)
	require.NoError(t, err)
	defer k.Close()
	require.Empty(t, k.Changed())
	for name, value := range map[string]string{"tcp_rmem": "4096\t4096\t4096\n", "tcp_available_congestion_control": "reno bbr\n", "tcp_fastopen_key": "other\n", "tcp_new": "1\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "net/ipv4", name), []byte(value), 0o600))
	}
	changed := k.Changed()
	require.Len(t, changed, 1)
	c := changed[0]
	require.Equal(t, []string{"net.ipv4.tcp_rmem", "4096 131072 6291456", "4096 4096 4096"}, []string{c.Name, c.Was, c.Is})
	require.Equal(t, "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'", c.Command())
	require.NoError(t, c.PutBack())
	b, err := os.ReadFile(filepath.Join(root, "net/ipv4/tcp_rmem"))
	require.NoError(t, err)
	require.Equal(t, c.Was, string(b))
	require.Empty(t, k.Changed())
	require.NoError(t, os.RemoveAll(root))
	require.ErrorContains(t, c.PutBack(), "setting net.ipv4.tcp_rmem: ")
}

func BenchmarkChanged(b *testing.B) {
	k, err := Keep(Root)
	require.NoError(b, err)
	defer k.Close()
	for b.Loop() {
		require.Empty(b, k.Changed())
	}
}
