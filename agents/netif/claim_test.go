package netif

import (
	"encoding/hex"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv6"
)

var (
	own4, own6 = netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("fd77::1")
	ownLink    = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	otherLink  = net.HardwareAddr{2, 0, 0, 0, 0, 0xaa}
)

// claimOf is a packet in which the other machine claims an address.
func claimOf(address netip.Addr) []byte {
	b, _ := question(address, otherLink)
	if address.Is4() {
		copy(b[14:], address.AsSlice())
	} else {
		b[headBytes] = byte(ipv6.ICMPTypeNeighborAdvertisement)
	}
	return b
}

// The packets that ask, byte by byte: RFC 5227, section 2.1.1, and RFC 4862, section 5.4.2.
// The checksum is by RFC 4443, section 2.3, worked out by hand.
func TestQuestion(t *testing.T) {
	for address, want := range map[netip.Addr][2]string{
		own4: {"0001080006040001" + "020000000001" + "00000000" + "000000000000" + "0a4d0001", "ffffffffffff"},
		own6: {"60000000" + "0018" + "3aff" + "00000000000000000000000000000000" + "ff0200000000000000000001ff000001" + "8700" + "7d2e" + "00000000" + "fd770000000000000000000000000001", "3333ff000001"},
	} {
		packet, to := question(address, ownLink)
		require.Equal(t, want[0], hex.EncodeToString(packet))
		require.Equal(t, want[1], hex.EncodeToString(to))
	}
}

// Who claims an address is known from the packet, and the kernel picks the same packets.
func TestClaimant(t *testing.T) {
	for _, address := range []netip.Addr{own4, own6} {
		_, code := claims(address)
		vm, err := bpf.NewVM(code)
		require.NoError(t, err)
		asked, _ := question(address, otherLink)
		for name, c := range map[string]struct {
			packet []byte
			claims bool
		}{
			"a claim":            {claimOf(address), true},
			"a question":         {asked, false},
			"another's":          {claimOf(address.Next()), false},
			"nothing":            {nil, false},
			"one byte too short": {claimOf(address)[:len(asked)-1], false},
		} {
			mac := claimant(c.packet, address, otherLink)
			if c.claims {
				require.Equal(t, otherLink, mac, name)
			} else {
				require.Nil(t, mac, name)
			}
			if name == "one byte too short" {
				continue // the kernel hands it over or not; who reads it decides
			}
			n, err := vm.Run(c.packet)
			require.Equal(t, c.claims, err == nil && n > 0, name)
		}
	}
}

func FuzzClaimant(f *testing.F) {
	for _, address := range []netip.Addr{own4, own6} {
		f.Add(claimOf(address))
		asked, _ := question(address, otherLink)
		f.Add(asked)
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		for _, address := range []netip.Addr{own4, own6} {
			if mac := claimant(packet, address, otherLink); mac != nil && len(mac) != 6 {
				t.Errorf("hardware address %s", mac)
			}
		}
	})
}
