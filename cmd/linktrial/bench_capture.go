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

	"linktrial/protocols/contract"
)

// capturedTransfer reads from an emulator's packet log how long a TCP transfer
// took: from the first data packet that the client's radio put on the air to
// the first packet with the server's acknowledgement byte on the last hop.
// That leaves out what the log does not show: the time on the air of that
// last packet, and the kernels' own time.
func capturedTransfer(path string) (time.Duration, error) {
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
	var clientSeq, serverSeq uint32 // of the first byte of each direction
	for {
		data, ci, err := r.ReadPacketData()
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
				clientSeq = tcp.Seq + 1
			}
			// The header goes before the clock starts.
			if n := len(tcp.Payload); n > 0 && begin.IsZero() && tcp.Seq+uint32(n)-clientSeq > contract.HeaderSize {
				begin = ci.Timestamp
			}
		case "relay-client":
			if tcp.SYN {
				serverSeq = tcp.Seq + 1
			}
			// The server's second byte is the acknowledgement.
			if n := len(tcp.Payload); n > 0 && end.IsZero() && tcp.Seq+uint32(n)-serverSeq > 1 {
				end = ci.Timestamp
			}
		}
	}
	if begin.IsZero() || end.IsZero() {
		return 0, fmt.Errorf("packet log %s has no whole transfer", path)
	}
	return end.Sub(begin), nil
}
