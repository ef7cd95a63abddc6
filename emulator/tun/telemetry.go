package tun

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/vishvananda/netlink"

	"linktrial/emulator/telemetry"
	"linktrial/internal/radio"
)

// serveTelemetry has each node's radio answer inside the node's namespace, at
// the node's own radio address: nothing of it passes the radio network.
func (e *Emulator) serveTelemetry() error {
	began := time.Now()
	for _, d := range e.devices {
		if d.node.second {
			continue // the ports are the first radio's
		}
		var packets net.PacketConn
		var pages net.Listener
		err := d.in(func() error {
			var c net.ListenConfig
			var err error
			packets, err = c.ListenPacket(context.Background(), "udp4", fmt.Sprintf("%s:%d", d.node.address, radio.EmulatedSNMPPort))
			if err != nil {
				return err
			}
			pages, err = c.Listen(context.Background(), "tcp4", fmt.Sprintf("%s:%d", d.node.address, radio.EmulatedHTTPPort))
			if err != nil {
				return errors.Join(err, packets.Close())
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("telemetry of node %s: %w", d.node.role, err)
		}
		e.telemetry = append(e.telemetry, telemetry.Serve(packets, pages, func() (*telemetry.State, error) { return e.radioState(d, began) }, e.log))
	}
	return nil
}

// radioState is what one node's radio can tell of itself now.
func (e *Emulator) radioState(d *device, began time.Time) (*telemetry.State, error) {
	s := &telemetry.State{Role: d.node.role, UptimeSeconds: time.Since(began).Seconds()}
	if !e.loop.do(func(l *loop) {
		l.release()
		s.DroppedPackets = l.droppedBy(s.Role)
		for _, r := range l.radios[0].net.Radios() {
			if r.From == s.Role {
				s.Neighbours = append(s.Neighbours, telemetry.Neighbour{Role: r.To, SNR: r.SNR, QueueBytes: r.QueueBytes, QueuePackets: r.QueuePackets, RateBitsPerSecond: r.RateBitsPerSecond, Loss: r.Loss})
			}
		}
	}) {
		return nil, errEnded
	}
	s.Sum()
	// The counters of the interface are the kernel's: the loop counts nothing of its own for them.
	err := d.in(func() error {
		l, err := netlink.LinkByName(d.name)
		if err != nil {
			return err
		}
		a := l.Attrs()
		s.MTUBytes, s.Up = a.MTU, a.Flags&net.FlagUp != 0
		if c := a.Statistics; c != nil {
			s.InBytes, s.InPackets, s.OutBytes, s.OutPackets = c.TxBytes, c.TxPackets, c.RxBytes, c.RxPackets
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", d.name, err)
	}
	return s, nil
}

// droppedBy is how many packets the queues of a radio had no place for since
// the start, over all networks that were installed.
func (l *loop) droppedBy(role radio.Role) uint64 {
	n := l.dropped[role]
	for _, h := range l.radios[0].net.Hops() {
		if h.From == role {
			n += uint64(h.DroppedPackets)
		}
	}
	return n
}

// keepDropped remembers what the network counted that is about to be replaced.
func (l *loop) keepDropped() {
	if len(l.radios) == 0 {
		return
	}
	if l.dropped == nil {
		l.dropped = map[radio.Role]uint64{}
	}
	for _, h := range l.radios[0].net.Hops() {
		l.dropped[h.From] += uint64(h.DroppedPackets)
	}
}
