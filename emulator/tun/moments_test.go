package tun

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"linktrial/emulator/link"
	"linktrial/internal/radiocontrol"
)

// sending is traffic whose packets a test sends at moments of its own.
type sending struct {
	*traffic
	devices []*device
	now     time.Duration
}

func newSending(t *testing.T, used *usedPorts, sizes ...int64) *sending {
	_, c, _, devices := counting(t, pair())
	var flows []radiocontrol.Flow
	for _, size := range sizes {
		flows = append(flows, radiocontrol.Flow{SizeBytes: size, Ports: []int{5001}})
	}
	s := &sending{traffic: c, devices: devices}
	used.trial++
	c.flows, c.used, c.clock = flows, used, func() time.Duration { return s.now }
	return s
}

// send sends a packet, whose last hop begins a millisecond later.
func (s *sending) send(at time.Duration, from, to int, b []byte, delivered bool) {
	s.now = at
	s.enter(7, from, to, b)
	e := link.Event{At: at + time.Millisecond, Handle: 7, Hop: from, Bytes: len(b), Outcome: link.Lost}
	if delivered {
		e.Outcome = link.Delivered
	}
	s.add(&e)
}

func toListener(port uint16, bytes int) []byte {
	return ported("10.77.0.3", unix.IPPROTO_TCP, port, 5001, bytes)
}

func fromListener(port uint16) []byte { return ported("10.77.0.1", unix.IPPROTO_TCP, 5001, port, 60) }

// connect opens a connection, and sends so many packets of 1000 bytes from a moment on, one
// each millisecond, of 960 bytes of payload each.
func (s *sending) connect(at time.Duration, port uint16, packets int) {
	s.send(at, 0, 1, toListener(port, 60), true)
	s.send(at+time.Millisecond, 1, 0, fromListener(port), true)
	for i := range packets {
		s.send(at+time.Duration(2+i)*time.Millisecond, 0, 1, toListener(port, 1000), true)
	}
}

func noPorts() *usedPorts { return &usedPorts{first: map[usedPort]int{}} }

// Of the ports that send to a listener the one counts that sends most, and what opens the
// connection is no payload.
func TestMomentsOfAFlow(t *testing.T) {
	s := newSending(t, noPorts(), 20_000)
	ms := time.Millisecond
	s.send(1*ms, 0, 1, toListener(40001, 60), true) // of a connection before
	s.send(2*ms, 0, 1, toListener(40002, 60), true)
	for i := range 20 { // before any answer
		s.send(3*ms+time.Duration(i), 0, 1, toListener(40002, 1000), false)
	}
	s.send(5*ms, 1, 0, fromListener(40002), false)
	s.send(6*ms, 1, 0, fromListener(40002), true)
	s.send(7*ms, 1, 0, fromListener(40002), true)
	for i := range 30 {
		s.send(time.Duration(10+i)*ms, 0, 1, toListener(40002, 1000), i != 3)
	}
	rows := s.report(s.devices)
	require.Len(t, rows, 2)
	require.Equal(t, []time.Duration{2 * ms, 26 * ms, 0}, []time.Duration{rows[0].FirstAt, rows[0].FlowingAt, rows[0].ArrivedAt})
	require.Equal(t, 32*ms, rows[0].CarriedAt, "21 packets of 960 bytes and two of 20, one of 22 was lost")
	require.Equal(t, []time.Duration{0, 0, 7 * ms, 0}, []time.Duration{rows[1].FirstAt, rows[1].FlowingAt, rows[1].ArrivedAt, rows[1].CarriedAt})
	for port := range uint16(2 * rememberedConnections) { // others that send little
		s.send(time.Minute, 0, 1, toListener(50000+port, 100), false)
	}
	row := s.report(s.devices)[0]
	require.Equal(t, 2*ms, row.FirstAt)
	require.Empty(t, row.Connections, "there is one flow")
}

// Each connection that carried as much as the least payload has moments of its own.
func TestMomentsOfSeveralFlows(t *testing.T) {
	s := newSending(t, noPorts(), 40_000, 20_000)
	ms := time.Millisecond
	s.connect(100*ms, 40001, 50)
	s.connect(300*ms, 40002, 30)
	s.connect(400*ms, 40003, 10) // too little
	// 16 packets of 1000 bytes are fewer than Opening; 20 bytes and 21 packets of 960 are more than 20 000.
	require.Equal(t, []radiocontrol.Connection{
		{FirstAt: 100 * ms, AnsweredAt: 102 * ms, FlowingAt: 118 * ms, CarriedAt: 123 * ms},
		{FirstAt: 300 * ms, AnsweredAt: 302 * ms, FlowingAt: 318 * ms, CarriedAt: 323 * ms},
	}, s.report(s.devices)[0].Connections)

	s = newSending(t, noPorts(), 40_000, 0) // a time ends one
	s.connect(100*ms, 40001, 50)
	require.Empty(t, s.report(s.devices)[0].Connections)
	require.Zero(t, s.report(s.devices)[0].CarriedAt)
}

// Of a payload that is divided over several connections, one after the other, the first one
// begins, unless a trial before may have left it.
func TestMomentsOfADividedPayload(t *testing.T) {
	used := noPorts()
	ms := time.Millisecond
	for _, x := range []struct {
		first, second uint16
		flowing       time.Duration
	}{{40001, 40002, 118 * ms}, {40001, 40003, 318 * ms}, {40004, 40001, 118 * ms}} {
		s := newSending(t, used, 60_000)
		s.connect(100*ms, x.first, 30)
		s.connect(300*ms, x.second, 40)
		row := s.report(s.devices)[0]
		require.Equal(t, []time.Duration{x.flowing, 335 * ms}, []time.Duration{row.FlowingAt, row.CarriedAt}, "%+v", x)
	}
}

// A connection that was forgotten for others may have sent before, so that its payload has
// never arrived later than it did; where none can be forgotten, nothing is said.
func TestConnectionsThatAreForgotten(t *testing.T) {
	s := newSending(t, noPorts(), 40_000, 40_000)
	ms := time.Millisecond
	s.send(0, 0, 1, toListener(40001, 60), true)
	for port := range uint16(rememberedConnections) {
		s.send(ms, 0, 1, toListener(50000+port, 100), true)
	}
	s.connect(100*ms, 40001, 50)
	// 16 KiB, 20 bytes and 25 packets of 960, where it sent 20 before: 42 are needed.
	require.Equal(t, []radiocontrol.Connection{{FirstAt: 100 * ms, AnsweredAt: 102 * ms, FlowingAt: 118 * ms, CarriedAt: 127 * ms}}, s.report(s.devices)[0].Connections)
	for port := range uint16(2 * rememberedConnections) {
		s.connect(time.Second, 51000+port, 20)
	}
	require.Empty(t, s.report(s.devices)[0].Connections)
}
