//go:build kernels

package inside

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/arrival"
	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// What netem and the emulated radios may differ by from the parameters that they are
// given, which bounds how far they are from each other.
const (
	rateTolerance  = 0.002 // share of the rate
	delayTolerance = 200 * time.Microsecond
	lossDeviations = 4 // standard deviations of so many independent losses
)

// TestNetem gives the kernel's netem and the emulated radios the same conditions,
// and holds what each of them does against these.
func TestNetem(t *testing.T) {
	for _, c := range []conditions{
		{bitsPerSecond: 64e3, delay: 500 * time.Millisecond},
		{bitsPerSecond: 256e3, delay: 100 * time.Millisecond},
		{bitsPerSecond: 2e6, delay: 20 * time.Millisecond},
	} {
		compare(t, c, func(w *way) (value, error) { return rateAndDelay(w, c) })
	}
	for _, c := range []conditions{
		{bitsPerSecond: 2e6, delay: 20 * time.Millisecond, loss: 0.01},
		{bitsPerSecond: 2e6, delay: 20 * time.Millisecond, loss: 0.1},
		{bitsPerSecond: 2e6, delay: 20 * time.Millisecond, loss: 0.3},
	} {
		compare(t, c, func(w *way) (value, error) { return lost(w, c) })
	}
}

// value is what was measured of a way, and which of it is out of tolerance.
type value struct {
	text  string
	fault error
}

// compare reports one row: the same conditions by netem and by the radios.
func compare(t *testing.T, c conditions, measure func(*way) (value, error)) {
	try(t, "netem", c.String(), func(t *testing.T) ([]string, error) {
		var texts []string
		var faults error
		for _, make := range []struct {
			name string
			way  func(*testing.T, conditions) *way
		}{{"netem", netem}, {"emulated radio", emulated}} {
			// A sub-test, so that the way ends before the next one begins.
			var f value
			var err error
			t.Run(make.name, func(t *testing.T) { f, err = measure(make.way(t, c)) })
			if err != nil {
				return nil, fmt.Errorf("%s: %w", make.name, err)
			}
			texts = append(texts, f.text)
			if f.fault != nil {
				faults = errors.Join(faults, fmt.Errorf("%s: %w", make.name, f.fault))
			}
		}
		return texts, faults
	})
}

// Extent of a measurement.
const (
	burstPackets = 100
	singlePacket = 20
	lossPackets  = 2000
)

// rateAndDelay sends packets back to back, whose arrivals have the rate, and then
// single ones over the idle way.
func rateAndDelay(w *way, c conditions) (f value, err error) {
	s, err := openSockets(w)
	if err != nil {
		return f, err
	}
	defer s.close()
	air := time.Duration(packetBytes * 8 / c.bitsPerSecond * 1e9)
	for i := range burstPackets {
		if err := s.send(i); err != nil {
			return f, err
		}
	}
	got, err := arrival.Receive(s.to, burstPackets, time.Duration(burstPackets)*air+c.delay+time.Second)
	if err != nil {
		return f, err
	}
	if len(got) != burstPackets {
		return f, fmt.Errorf("%d of %d packets arrived over a way without losses", len(got), burstPackets)
	}
	rate := (burstPackets - 1) * packetBytes * 8 / (got[burstPackets-1] - got[0]).Seconds()
	var delays []time.Duration
	for i := range singlePacket {
		sent := arrival.Now()
		if err := s.send(i); err != nil {
			return f, err
		}
		got, err := arrival.Receive(s.to, 1, air+c.delay+time.Second)
		if err != nil {
			return f, err
		}
		if len(got) != 1 {
			return f, errors.New("a single packet did not arrive over a way without losses")
		}
		delays = append(delays, got[0]-sent)
	}
	slices.Sort(delays)
	delay, expected := delays[len(delays)/2], air+c.delay
	f.text = fmt.Sprintf("%.2f kbit/s, %.3f ms", rate/1000, delay.Seconds()*1000)
	if off := rate/c.bitsPerSecond - 1; math.Abs(off) > rateTolerance {
		f.fault = fmt.Errorf("the rate is off by %.2f %%, at most %g %% is tolerated", off*100, rateTolerance*100)
	}
	if off := delay - expected; off.Abs() > delayTolerance {
		f.fault = errors.Join(f.fault, fmt.Errorf("a packet takes %s, expected %s ± %s", delay, expected, delayTolerance))
	}
	return f, nil
}

// lost sends packets at half the rate and counts those that do not arrive.
func lost(w *way, c conditions) (f value, err error) {
	s, err := openSockets(w)
	if err != nil {
		return f, err
	}
	defer s.close()
	air := time.Duration(packetBytes * 8 / c.bitsPerSecond * 1e9)
	arrived := 0
	for i := 0; i < lossPackets; {
		// Not more than the receiver's buffer holds.
		for range 100 {
			if err := s.send(i); err != nil {
				return f, err
			}
			i++
			time.Sleep(2 * air)
		}
		got, err := arrival.Receive(s.to, 100, c.delay+4*air)
		if err != nil {
			return f, err
		}
		arrived += len(got)
	}
	share := 1 - float64(arrived)/lossPackets
	f.text = fmt.Sprintf("%.2f %% of %d packets", share*100, lossPackets)
	if tolerated := lossDeviations * math.Sqrt(c.loss*(1-c.loss)/lossPackets); math.Abs(share-c.loss) > tolerated {
		f.fault = fmt.Errorf("%.2f %% of the packets were lost, expected %g %% ± %.2f %%", share*100, c.loss*100, tolerated*100)
	}
	return f, nil
}

// sockets are a sender at the client and a receiver with the kernel's time stamps
// at the server.
type sockets struct{ from, to int }

const udpPort = 7001

func openSockets(w *way) (s *sockets, err error) {
	s = &sockets{-1, -1}
	addr := unix.SockaddrInet4{Port: udpPort, Addr: [4]byte{10, 77, 0, 3}}
	open := func(ns string, fd *int, f func() error) error {
		return process.InNamespace(namespace.Path(ns), func() (err error) {
			if *fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
				return err
			}
			return f()
		})
	}
	err = errors.Join(
		open(w.server, &s.to, func() error {
			return errors.Join(unix.SetsockoptInt(s.to, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20),
				arrival.Enable(s.to), unix.Bind(s.to, &addr))
		}),
		open(w.client, &s.from, func() error {
			return errors.Join(unix.SetsockoptInt(s.from, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4<<20), unix.Connect(s.from, &addr))
		}))
	if err != nil {
		s.close()
		return nil, fmt.Errorf("sockets: %w", err)
	}
	return s, nil
}

func (s *sockets) close() {
	for _, fd := range []int{s.from, s.to} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

func (s *sockets) send(number int) error {
	b := make([]byte, packetBytes-headerBytes)
	binary.BigEndian.PutUint32(b, uint32(number))
	if err := unix.Send(s.from, b, 0); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}
