package packettimes

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"linktrial/executor/runsheet"
	"linktrial/internal/radiocontrol"
)

// mostConnections bounds those that are told apart; of more, those that were idle longest
// are forgotten.
const mostConnections = 1024

// opening is how many bytes what opens a connection has at most.
const opening = radiocontrol.Opening

// notes are the program at the interfaces of a node's radios, and what it keeps.
type notes struct {
	attached
	connections *ebpf.Map // connection: moments
	listeners   *ebpf.Map // listener, by its port from [runsheet.FirstPort] on
	packets     *ebpf.Map // how many have passed to each listener, in the same way, and of whose the port is not known; then those from listeners
}

// someUnseen is more packets than pass while an interface has come anew, and nobody has
// looked at it yet.
const someUnseen = 1 << 40

// connection is as the program has it.
type connection struct {
	Client, Listener uint16 // ports
	Protocol         uint32
}

// moments are as the program has them. Times are of CLOCK_MONOTONIC; 0: it has not come.
type moments struct {
	First    uint64 // when its first packet passed, where that was to the listener
	Answered uint64 // when the listener's first packet passed
	Bytes    uint64 // to the listener, without the least headers
	Since    uint64 // those of them that passed after the listener's first packet
	Flowing  uint64 // when these were more than [radiocontrol.Opening]
	All      uint64 // when Bytes were as many as the least payload has
}

// listener is as the program has it.
type listener struct {
	Least, Sum uint64 // of its payloads, in bytes; 0: that is not known
	Bytes      uint64 // to it, over all connections, without the least headers; counted where Sum is known
	All        uint64 // when Bytes were as many as Sum
}

// connecting is the time from the connection's first packet to the listener until the first
// one of the listener; 0: that is not known.
func (m *moments) connecting() time.Duration {
	if m.First == 0 || m.Answered <= m.First {
		return 0
	}
	return time.Duration(m.Answered - m.First)
}

// took is the time from when the payload had begun until as many bytes as the least has
// had passed; 0: that is not known.
func (m *moments) took() time.Duration {
	if m.Flowing == 0 || m.All <= m.Flowing {
		return 0
	}
	return time.Duration(m.All - m.Flowing)
}

func start(d direction, devices []string) (*notes, error) {
	n, err := load(d)
	if err != nil {
		return nil, fmt.Errorf("packets of transfers cannot be timed: %w", err)
	}
	if err := n.attachTo(devices); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func load(d direction) (*notes, error) {
	n := &notes{}
	var err error
	n.connections, err = ebpf.NewMap(&ebpf.MapSpec{Name: "lt_times", Type: ebpf.LRUHash, KeySize: keyBytes, ValueSize: valueBytes, MaxEntries: mostConnections})
	if err == nil {
		n.listeners, err = ebpf.NewMap(&ebpf.MapSpec{Name: "lt_listeners", Type: ebpf.Array, KeySize: 4, ValueSize: listenerBytes, MaxEntries: runsheet.LastPort - runsheet.FirstPort + 1})
	}
	if err == nil {
		n.packets, err = ebpf.NewMap(&ebpf.MapSpec{Name: "lt_packets", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 2 * answersPlace})
	}
	if err == nil {
		n.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "lt_times", Type: ebpf.SocketFilter, License: "MIT", Instructions: instructions(d, n.connections.FD(), n.listeners.FD(), n.packets.FD())})
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// expect begins anew with a listener, of whose transfers' payloads the least and the sum are
// given, in bytes; 0: that is not known.
func (n *notes) expect(port int, least, sum int64) error {
	if !runsheet.ListenerPort(port) {
		return fmt.Errorf("packets of transfers: port %d, expected %d to %d", port, runsheet.FirstPort, runsheet.LastPort)
	}
	if err := n.listeners.Put(uint32(port-runsheet.FirstPort), listener{Least: uint64(least), Sum: uint64(sum)}); err != nil {
		return fmt.Errorf("packets of transfers: %w", err)
	}
	return nil
}

// passed is how many packets have passed to a listener since the begin, with place 0, or
// from it, with [answersPlace], at the most: with those whose port is not known.
func (n *notes) passed(port, place int) (int64, error) {
	if !runsheet.ListenerPort(port) {
		return 0, fmt.Errorf("packets of port %d, expected %d to %d", port, runsheet.FirstPort, runsheet.LastPort)
	}
	var passed, unknown uint64
	if err := errors.Join(n.packets.Lookup(uint32(place+port-runsheet.FirstPort), &passed), n.packets.Lookup(uint32(place+unknownPort), &unknown)); err != nil {
		return 0, fmt.Errorf("packets of port %d: %w", port, err)
	}
	return int64(passed+unknown) + n.anew()*someUnseen, nil
}

// kept is what the program keeps of connections.
func (n *notes) kept() (map[connection]moments, error) {
	out := map[connection]moments{}
	var k connection
	var m moments
	all := n.connections.Iterate()
	for all.Next(&k, &m) {
		out[k] = m
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("packets of transfers: %w", err)
	}
	return out, nil
}

// whole is the time from when a payload to a listener had begun until as many bytes as the
// sum has had passed over all connections, of which kept has those; 0: that is not known.
// Those that may be left of an attempt before began nothing, but for the one that sent most.
func (n *notes) whole(port int, kept map[connection]moments, before map[connection]bool) (time.Duration, error) {
	var l listener
	if err := n.listeners.Lookup(uint32(port-runsheet.FirstPort), &l); err != nil {
		return 0, fmt.Errorf("packets to port %d: %w", port, err)
	}
	var most moments
	began := uint64(0)
	for k, m := range kept {
		if int(k.Listener) != port {
			continue
		}
		if m.Bytes > most.Bytes {
			most = m
		}
		if !before[k] && m.Flowing > 0 && (began == 0 || m.Flowing < began) {
			began = m.Flowing
		}
	}
	if began == 0 || most.Flowing > 0 && most.Flowing < began {
		began = most.Flowing
	}
	if began == 0 || l.All <= began {
		return 0, nil
	}
	return time.Duration(l.All - began), nil
}

// forget forgets a connection; what passes later is of another one.
func (n *notes) forget(k connection) error {
	if err := n.connections.Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("packets of transfers: %w", err)
	}
	return nil
}

// Close ends it.
func (n *notes) Close() error {
	n.detach()
	return closeAll(n.program, n.connections, n.listeners, n.packets)
}
