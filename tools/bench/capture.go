package main

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

// capturedTransfer returns the duration of a TCP transfer in an emulator's packet log:
// from the start of the transmission of the first data packet at the client's radio to
// the arrival, after the last hop, of the first packet with the server's
// acknowledgement byte that the channel did not lose.
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
	c := capture{network: n}
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
		switch {
		case !ok:
		case iface.Name == "client-relay":
			c.fromClient(tcp, ci.Timestamp)
		case iface.Name == "relay-client" && len(opts.Comments) == 0: // a comment: the channel lost the packet
			c.toClient(tcp, ci.Timestamp, len(data))
		}
	}
	if c.begin.IsZero() || c.end.IsZero() {
		return 0, fmt.Errorf("packet log %s has no complete transfer", path)
	}
	return c.end.Sub(c.begin), nil
}

// capture follows one TCP connection through a packet log.
type capture struct {
	network    *radio.Network
	port       layers.TCPPort // of the client in this connection; the one before may still be closing
	clientSeq  uint32         // of the first byte of each direction
	serverSeq  uint32
	begin, end time.Time
}

func (c *capture) fromClient(tcp *layers.TCP, at time.Time) {
	if tcp.SYN {
		c.port, c.clientSeq = tcp.SrcPort, tcp.Seq+1
	}
	// The clock starts after the header.
	if k := len(tcp.Payload); tcp.SrcPort == c.port && k > 0 && c.begin.IsZero() && tcp.Seq+uint32(k)-c.clientSeq > contract.HeaderSize {
		c.begin = at
	}
}

func (c *capture) toClient(tcp *layers.TCP, at time.Time, bytes int) {
	if c.port == 0 || tcp.DstPort != c.port {
		return
	}
	if tcp.SYN {
		c.serverSeq = tcp.Seq + 1
	}
	// The server's second byte is the acknowledgement.
	if k := len(tcp.Payload); k > 0 && c.end.IsZero() && tcp.Seq+uint32(k)-c.serverSeq > 1 {
		c.end = at.Add(hopTime(c.network, bytes))
	}
}

// hopTime returns how long a packet takes over the client's link.
func hopTime(n *radio.Network, bytes int) time.Duration {
	for _, l := range n.Links {
		if l.A == radio.RoleClient || l.B == radio.RoleClient {
			return l.Delay + time.Duration(float64(bytes+n.FrameOverheadBytes)*8/l.RateBitsPerSecond*1e9)
		}
	}
	return 0
}
