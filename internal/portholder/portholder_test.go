package portholder

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	u, err := net.ListenPacket("udp", "[::1]:0")
	require.NoError(t, err)
	defer u.Close()
	comm, err := os.ReadFile("/proc/self/comm")
	require.NoError(t, err)
	self := fmt.Sprintf("%s (process %d)", strings.TrimSpace(string(comm)), os.Getpid())
	tcp, udp := l.Addr().(*net.TCPAddr).Port, u.LocalAddr().(*net.UDPAddr).Port
	require.Contains(t, Find("tcp", tcp), self)
	require.Contains(t, Find("udp", udp), self)
	require.Contains(t, Find("", udp), self)
	l.Close()
	require.Empty(t, Find("tcp", tcp), "nobody listens any more")
	require.Empty(t, Find("udp", 0))
}
