package tun

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"linktrial/emulator/link"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// ported is a packet of a protocol between ports, to an address.
func ported(address string, protocol uint8, source, destination uint16, bytes int) []byte {
	b := packetTo(address, bytes)
	b[9] = protocol
	binary.BigEndian.PutUint16(b[20:], source)
	binary.BigEndian.PutUint16(b[22:], destination)
	return b
}

var listening = radiocontrol.PortRange{First: 5001, Last: 5999}

// counting is a loop over sockets that counts traffic.
func counting(t testing.TB, n *radio.Network) (*loop, *traffic, map[radio.Role]int, []*device) {
	l, ends := sockets(t, n)
	var devices []*device
	for _, v := range n.Nodes {
		devices = append(devices, &device{node: node{role: v.Role}})
	}
	c := newTraffic(&radiocontrol.Begin{Listeners: listening, Flows: []radiocontrol.Flow{{SizeBytes: 20_000, Ports: []int{5001}}}}, len(devices), l.radios, &usedPorts{first: map[usedPort]int{}}, l.now)
	l.observe(c, nil)
	return l, c, ends, devices
}

func TestTrafficByPortAndHop(t *testing.T) {
	n := chain()
	for i := range n.Links {
		n.Links[i].RateBitsPerSecond, n.Links[i].Delay, n.Links[i].Channel = 1e12, 0, radio.Channel{Model: radio.ChannelPerfect}
	}
	l, c, ends, devices := counting(t, n)
	icmp := packetTo("10.77.0.1", 20+8+28)
	icmp[9] = unix.IPPROTO_ICMP
	icmp[20] = 3 // port unreachable, of a packet from 40001 to 5001
	copy(icmp[28:], ported("10.77.0.3", unix.IPPROTO_UDP, 40001, 5001, 28))
	first, later := ported("10.77.0.3", unix.IPPROTO_UDP, 40001, 5001, 1000), packetTo("10.77.0.3", 300)
	first[6], later[7], later[9] = 0x20, 122, unix.IPPROTO_UDP
	first[5], later[5] = 7, 7 // identification
	stray := append([]byte{}, later...)
	stray[5] = 8
	for _, x := range []struct {
		from   radio.Role
		packet []byte
	}{
		{radio.RoleClient, ported("10.77.0.3", unix.IPPROTO_UDP, 40001, 5001, 1000)},
		{radio.RoleClient, ported("10.77.0.3", unix.IPPROTO_UDP, 40002, 5001, 100)},
		{radio.RoleServer, ported("10.77.0.1", unix.IPPROTO_UDP, 5001, 40002, 60)},
		{radio.RoleServer, icmp},
		{radio.RoleClient, first},
		{radio.RoleClient, later},
		{radio.RoleClient, stray},
		{radio.RoleServer, ported("10.77.0.1", unix.IPPROTO_UDP, 5002, 5500, 70)},
		{radio.RoleServer, ported("10.77.0.2", unix.IPPROTO_TCP, 22, 4022, 80)},
	} {
		_, err := unix.Write(ends[x.from], x.packet)
		require.NoError(t, err)
		for i, v := range n.Nodes {
			if v.Role == x.from {
				l.read(i)
			}
		}
		time.Sleep(time.Millisecond)
		l.release()
	}
	l.release()
	type row struct {
		from, to, source, destination radio.Role
		protocol, sp, dp              int
		packets, bytes                int64
	}
	var got []row
	for _, x := range c.report(devices) {
		require.Equal(t, x.SentPackets, x.DeliveredPackets)
		require.Equal(t, x.SentBytes, x.DeliveredBytes)
		got = append(got, row{x.From, x.To, x.Source, x.Destination, x.Protocol, x.SourcePort, x.DestinationPort, x.SentPackets, x.SentBytes})
	}
	cl, re, se := radio.RoleClient, radio.RoleRelay, radio.RoleServer
	require.ElementsMatch(t, []row{
		{cl, re, cl, se, 17, 0, 5001, 4, 2400}, {re, se, cl, se, 17, 0, 5001, 4, 2400},
		{se, re, se, cl, 17, 5001, 0, 2, 116}, {re, cl, se, cl, 17, 5001, 0, 2, 116},
		{cl, re, cl, se, 17, 0, 0, 1, 300}, {re, se, cl, se, 17, 0, 0, 1, 300},
		{se, re, se, cl, 17, 5002, 5500, 1, 70}, {re, cl, se, cl, 17, 5002, 5500, 1, 70},
		{se, re, se, re, 6, 22, 4022, 1, 80},
	}, got)
}

// What the channel loses and the queue drops is told from what arrives.
func TestTrafficThatIsMissed(t *testing.T) {
	n := pair()
	_, c, _, devices := counting(t, n)
	b := ported("10.77.0.3", unix.IPPROTO_UDP, 40001, 5001, 1000)
	c.enter(7, 0, 1, b)
	for _, e := range []link.Event{{Bytes: 1000, Outcome: link.Delivered}, {Bytes: 1000, Outcome: link.Lost}, {Bytes: 100, Outcome: link.Lost}, {Bytes: 1000, Outcome: link.Dropped}} {
		e.Handle = 7
		c.add(&e)
	}
	got := c.report(devices)
	require.Len(t, got, 1)
	g := got[0]
	require.Equal(t, []int64{3, 2100, 1, 1000, 1, 2}, []int64{g.SentPackets, g.SentBytes, g.DeliveredPackets, g.DeliveredBytes, g.DroppedPackets, g.MissedLarge})
}

// Of very many ports the rest is counted together.
func TestTrafficOfManyPorts(t *testing.T) {
	_, c, _, devices := counting(t, pair())
	for port := range uint16(200) {
		c.enter(1, 0, 1, ported("10.77.0.3", unix.IPPROTO_TCP, 30000+port, 80, 100))
		c.add(&link.Event{Handle: 1, Bytes: 100, Outcome: link.Delivered})
	}
	got := c.report(devices)
	require.Len(t, got, maxKinds+1)
	last := got[len(got)-1]
	require.Equal(t, []int64{0, 0, 0, 200 - maxKinds}, []int64{int64(last.Protocol), int64(last.SourcePort), int64(last.DestinationPort), last.SentPackets})
}

// The most within any window, to a step.
func TestMostInAWindow(t *testing.T) {
	for name, c := range map[string]struct {
		at   []time.Duration // 10 bytes each; a window is 2 s
		want int64
	}{
		"none":                        {nil, 0},
		"one":                         {[]time.Duration{time.Hour}, 10},
		"together":                    {[]time.Duration{0, time.Second, 2 * time.Second}, 30},
		"a step apart counts":         {[]time.Duration{0, 2009 * time.Millisecond}, 20},
		"two steps apart do not":      {[]time.Duration{0, 2010 * time.Millisecond}, 10},
		"the best of several windows": {[]time.Duration{0, time.Minute, 61 * time.Second, 61 * time.Second, 5 * time.Minute, 301 * time.Second}, 30},
	} {
		s := sliding{step: 10 * time.Millisecond}
		for _, at := range c.at {
			s.add(at, 10)
		}
		require.Equal(t, c.want, s.most, name)
	}
}

// Every packet of a device is short at times.
func FuzzTraffic(f *testing.F) {
	f.Add(ported("10.77.0.3", unix.IPPROTO_UDP, 40001, 5001, 40))
	icmp := packetTo("10.77.0.1", 48)
	icmp[9], icmp[20] = unix.IPPROTO_ICMP, 3
	f.Add(icmp)
	c := &traffic{clock: func() time.Duration { return 1 }, used: &usedPorts{first: map[usedPort]int{}}, listeners: listening, hops: make([]radiocontrol.Hop, 1), large: []int32{700}, numbers: map[kind]uint16{}, sources: make([]source, 2)}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 20 {
			return
		}
		c.enter(3, 0, 1, b)
		require.LessOrEqual(t, len(c.kinds), maxKinds+4)
		require.Less(t, int(c.of[3]), len(c.kinds))
	})
}

// What counting adds to a packet that passes two hops.
func BenchmarkTraffic(b *testing.B) {
	_, c, _, _ := counting(b, chain())
	packets := [][]byte{ported("10.77.0.3", unix.IPPROTO_UDP, 40001, 5001, 1000), ported("10.77.0.3", unix.IPPROTO_UDP, 40002, 5001, 1000)}
	for name, flows := range map[string]int{"one flow": 1, "two flows in turn": 2} {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				c.enter(7, 0, 2, packets[i%flows])
				for hop := range 2 {
					c.add(&link.Event{Handle: 7, Hop: hop, Bytes: 1000, Outcome: link.Delivered})
				}
			}
		})
	}
}
