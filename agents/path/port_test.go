package path

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"linktrial/executor"
)

// portNode is [node] for the check of ports.
func portNode(args []string) error {
	switch args[0] {
	case "port":
		port, err := strconv.Atoi(args[4])
		if err != nil {
			return err
		}
		p := &Paths{Device: "radio0", Key: testKey}
		calls := 0
		x := p.Port(context.Background(), executor.PathEnds{From: args[1], To: args[2]}, executor.PathUDP, executor.PortQuestion{Network: args[3], Port: port}, func(x *executor.PortExchange) bool {
			calls++
			return x.Near.Passed > 0 || calls == 8
		})
		return json.NewEncoder(os.Stdout).Encode(x)
	case "listen": // takes connections and packets, and never answers one
		l, err := net.Listen("tcp", net.JoinHostPort(args[1], "5001"))
		if err != nil {
			return err
		}
		u, err := net.ListenPacket("udp", net.JoinHostPort(args[1], "5005"))
		if err != nil {
			return err
		}
		time.Sleep(time.Hour)
		_, _ = l.Close(), u.Close()
		return nil
	}
	return fmt.Errorf("%q", args)
}

func (n *nodes) port(from, to, network string, port int) (x executor.PortExchange) {
	n.t.Helper()
	out, err := n.command(0, "port", from, to, network, strconv.Itoa(port)).Output()
	require.NoError(n.t, err)
	require.NoError(n.t, json.Unmarshal(out, &x))
	require.NotNil(n.t, x.Far)
	require.Empty(n.t, x.Far.Unknown)
	require.Empty(n.t, x.Near.Unknown)
	return x
}

// Each firewall at either end is told from the others, and from none, by what both ends
// count, over IPv4 and IPv6; a listener that never answers does not look like one.
func TestPort(t *testing.T) {
	t.Parallel()
	for _, ends := range [][2]string{{"10.98.0.1", "10.98.0.2"}, {"fd98::1", "fd98::2"}} {
		for _, c := range []struct {
			network  string
			port     int
			protocol int
			match    string // of nft, as text
		}{
			{"tcp", 5001, unix.IPPROTO_TCP, "tcp"},
			{"udp", 5005, unix.IPPROTO_UDP, "udp"},
			{"sctp", 5007, unix.IPPROTO_UDP, "udp"}, // the kernel has no listener there
		} {
			if ends[0][0] == 'f' && c.network == "udp" {
				continue // each is in another combination
			}
			t.Run(ends[0]+" "+c.network, func(t *testing.T) {
				t.Parallel()
				n := newNodes(t)
				n.respond(ends[0], ends[1])
				l := n.command(1, "listen", ends[1])
				require.NoError(t, l.Start())
				t.Cleanup(func() {
					_ = l.Process.Kill()
					_ = l.Wait() // killed
				})
				for name, f := range map[string]struct {
					at           int
					chain, field string
					action       string
					holds        func(x *executor.PortExchange) bool
				}{
					"none": {-1, "", "", "", func(x *executor.PortExchange) bool { return x.Near.Passed > 0 }},
					"server in": {1, "input", "dport", "drop", func(x *executor.PortExchange) bool {
						return x.Far.Arrived >= 5 && x.Far.Passed == 0 && x.Near.Passed == 0
					}},
					"server in, rejected": {1, "input", "dport", "reject", func(x *executor.PortExchange) bool {
						return x.Far.Arrived >= 5 && x.Far.Passed == 0 && x.Near.Passed == 0
					}},
					"server in, reset": {1, "input", "dport", "reject with tcp reset", func(x *executor.PortExchange) bool {
						return x.Far.Arrived >= 5 && x.Far.Passed == 0 && x.Near.Passed == 0
					}},
					"server out": {1, "output", "sport", "drop", func(x *executor.PortExchange) bool {
						return x.Far.Passed >= 5 && x.Far.Left == 0 && x.Far.Sent >= 5 && x.Far.Fault == "operation not permitted"
					}},
					"client out": {0, "output", "dport", "drop", func(x *executor.PortExchange) bool {
						return x.Near.Sent >= 5 && x.Near.Left == 0 && x.Near.Fault == "operation not permitted"
					}},
					"client in": {0, "input", "sport", "drop", func(x *executor.PortExchange) bool {
						return x.Far.Left >= 5 && x.Near.Arrived >= 5 && x.Near.Passed == 0
					}},
					"another port, anybody": {1, "input", "dport 6000", "drop", func(x *executor.PortExchange) bool { return x.Near.Passed > 0 }},
				} {
					if f.action == "reject with tcp reset" && c.network != "tcp" || c.network == "sctp" && f.at >= 0 {
						continue // each is in another combination
					}
					if f.at >= 0 {
						field := f.field
						if len(field) == 5 {
							field = fmt.Sprintf("%s %d", field, c.port)
						}
						n.nft(f.at, f.chain, fmt.Sprintf("%s %s %s", c.match, field, f.action))
					}
					x := n.port(ends[0], ends[1], c.network, c.port)
					require.True(t, f.holds(&x), "%s %s %s: %+v, far %+v", ends[0], c.network, name, x, x.Far)
					require.Equal(t, c.protocol, x.Far.Protocol)
					require.Positive(t, x.Answered, "the plain exchange passes all the time")
					if f.at >= 0 {
						n.run("ip", "netns", "exec", n.names[f.at], "nft", "flush", "ruleset")
					}
				}
			})
		}
	}
}

// nft has the firewall of a node do what a rule says.
func (n *nodes) nft(i int, chain, rule string) {
	n.t.Helper()
	n.run("ip", "netns", "exec", n.names[i], "nft", fmt.Sprintf("table inet f { chain c { type filter hook %s priority 0; %s; }; }", chain, rule))
}

// The packets byte by byte; the checksums are worked out by hand (RFC 1071), the CRC with
// the polynomial of RFC 9260, appendix A.
func TestPacket(t *testing.T) {
	own, far := netip.MustParseAddrPort("10.98.0.1:20000"), netip.MustParseAddrPort("10.98.0.2:5001")
	for protocol, want := range map[int][2]string{
		unix.IPPROTO_UDP:  {"4e2013890020" + "0000" + hex.EncodeToString([]byte(udpMark)) + "01020305", ""},
		unix.IPPROTO_TCP:  {"4e201389" + "01020305" + "00000000" + "6002ffff" + "00000000" + "020404c4", ""},
		unix.IPPROTO_SCTP: {"4e201389" + "00000000" + "00000000" + "0100001c" + "01020305" + "00010000" + "00010001" + "01020305" + "000c000800050006", ""},
	} {
		p := packet{protocol: protocol, from: own, to: far, number: 0x01020305}
		b := p.encode()
		at := map[int]int{unix.IPPROTO_UDP: 6, unix.IPPROTO_TCP: 16, unix.IPPROTO_SCTP: 8}[protocol]
		if protocol != unix.IPPROTO_SCTP {
			require.Zero(t, p.checksum(b), "with its checksum in it, the sum is 0")
			b[at], b[at+1] = 0, 0
		} else {
			require.NotZero(t, b[at:at+4])
			clear(b[at : at+4])
		}
		require.Equal(t, want[0], hex.EncodeToString(b))
		number, ok := probeNumber(protocol, p.encode())
		require.True(t, ok)
		require.Equal(t, p.number, number)
		a := packet{protocol: protocol, from: far, to: own, answer: true, number: number}
		if protocol != unix.IPPROTO_UDP {
			_, ok = probeNumber(protocol, a.encode())
			require.False(t, ok, "an answer is no probe")
		}
		require.Len(t, a.encode(), len(b), "nobody gains by asking in another's name")
	}
	require.True(t, refusal(unix.IPPROTO_TCP, append(make([]byte, 13), 0x14, 0, 0)))
	require.False(t, refusal(unix.IPPROTO_TCP, append(make([]byte, 13), 0x12, 0, 0)))
}

// A port of SCTP in the kernel's list (net/sctp/proc.c).
func TestSCTPAt(t *testing.T) {
	const list = " ENDPT     SOCK   STY SST HBKT LPORT   UID INODE LADDRS\n" +
		"ffff8a0 ffff8b0 2   10  59   5003      0 31337 10.77.0.3 \n"
	require.True(t, sctpAt(list, 5003))
	require.False(t, sctpAt(list, 59))
	require.False(t, sctpAt("", 5003))
}

func FuzzProbeNumber(f *testing.F) {
	for _, protocol := range []int{unix.IPPROTO_UDP, unix.IPPROTO_TCP, unix.IPPROTO_SCTP} {
		p := packet{protocol: protocol, from: netip.MustParseAddrPort("[fd98::1]:20000"), to: netip.MustParseAddrPort("[fd98::2]:5001"), number: 7}
		f.Add(uint8(protocol), p.encode())
	}
	f.Fuzz(func(t *testing.T, protocol uint8, b []byte) {
		_, isProbe := probeNumber(int(protocol), b)
		if _, _, ok := ports(b); isProbe && !ok {
			t.Errorf("a probe without ports: %x", b)
		}
		refusal(int(protocol), b)
	})
}
