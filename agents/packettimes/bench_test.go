package packettimes

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
)

// BenchmarkProgram has the kernel run each program on a packet that arrives from a listener,
// and on one of other programs, which most packets of a node are.
func BenchmarkProgram(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root: loads a program into the kernel")
	}
	c, err := load(leaving)
	require.NoError(b, err)
	defer func() { require.NoError(b, c.Close()) }()
	counter, err := StartTraffic()
	require.NoError(b, err)
	defer func() { require.NoError(b, counter.Close()) }()
	for _, x := range []struct {
		name    string
		program *ebpf.Program
		port    uint16
	}{
		{"times/listener", c.program, runsheet.FirstPort}, {"times/other", c.program, 443},
		{"bytes/listener", counter.program, runsheet.FirstPort}, {"bytes/other", counter.program, 443},
	} {
		b.Run(x.name, func(b *testing.B) {
			packet := make([]byte, 14+1500) // with Ethernet's header
			packet[12], packet[13] = 0x08, 0x00
			ip := packet[14:]
			ip[0], ip[9] = 0x45, 6
			binary.BigEndian.PutUint16(ip[2:], 1500)
			binary.BigEndian.PutUint16(ip[20:], x.port)
			binary.BigEndian.PutUint16(ip[22:], 40000)
			_, each, err := x.program.Benchmark(packet, 1_000_000, nil)
			require.NoError(b, err)
			b.ReportMetric(float64(each.Nanoseconds()), "ns/packet")
			b.ReportMetric(0, "ns/op")
		})
	}
}
