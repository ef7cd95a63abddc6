package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// capturedTransfer reads from an emulator's packet log how long a TCP transfer
// took: from the start on the air of the first data packet at the client's
// radio to the arrival, after the last hop, of the first packet with the
// server's acknowledgement byte that the channel let through.
func capturedTransfer(path string, n *radio.Network) (time.Duration, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		return 0, fmt.Errorf("packet log %s: %w", path, err)
	}
	var begin, end time.Time
	var port layers.TCPPort         // of the client, whose connection this is: the one before may still be closing
	var clientSeq, serverSeq uint32 // of the first byte of each direction
	for {
		data, ci, opts, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("packet log %s: %w", path, err)
		}
		iface, err := r.Interface(ci.InterfaceIndex)
		if err != nil {
			return 0, err
		}
		p := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.NoCopy)
		tcp, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if !ok {
			continue
		}
		switch iface.Name {
		case "client-relay":
			if tcp.SYN {
				port, clientSeq = tcp.SrcPort, tcp.Seq+1
			}
			if tcp.SrcPort != port {
				continue
			}
			// The header goes before the clock starts.
			if k := len(tcp.Payload); k > 0 && begin.IsZero() && tcp.Seq+uint32(k)-clientSeq > contract.HeaderSize {
				begin = ci.Timestamp
			}
		case "relay-client":
			if port == 0 || tcp.DstPort != port {
				continue
			}
			if tcp.SYN {
				serverSeq = tcp.Seq + 1
			}
			// The server's second byte is the acknowledgement.
			lost := len(opts.Comments) > 0
			if k := len(tcp.Payload); k > 0 && end.IsZero() && !lost && tcp.Seq+uint32(k)-serverSeq > 1 {
				end = ci.Timestamp.Add(hopTime(n, len(data)))
			}
		}
	}
	if begin.IsZero() || end.IsZero() {
		return 0, fmt.Errorf("packet log %s has no whole transfer", path)
	}
	return end.Sub(begin), nil
}

// hopTime is how long a packet takes over the client's link.
func hopTime(n *radio.Network, bytes int) time.Duration {
	for _, l := range n.Links {
		if l.A == radio.RoleClient || l.B == radio.RoleClient {
			return l.Delay + time.Duration(float64(bytes+n.FrameOverheadBytes)*8/l.RateBitsPerSecond*1e9)
		}
	}
	return 0
}
