package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"linktrial/internal/arrival"
	"linktrial/internal/radio"
)

const headers = 28 // IPv4 and UDP

// MeasureAccuracy sends packets back to back for about the given time on the
// air, then single ones, and compares their arrivals with the configuration.
// Arrivals are the kernel's receive time stamps.
func MeasureAccuracy(rate float64, onAir time.Duration) (a Accuracy, err error) {
	a = Accuracy{BitsPerSecond: rate, PacketBytes: fullPacket}
	// Slow links get short packets, so that there are enough of them.
	for a.PacketBytes > 100 && float64(minPackets*a.PacketBytes*8)/rate > onAir.Seconds() {
		a.PacketBytes -= 100
	}
	air := time.Duration(float64(a.PacketBytes*8) / rate * 1e9)
	a.Packets = min(20_000, max(minPackets, int(onAir/air)))

	r, err := newRig(network(rate, delay, radio.Queue{}))
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	from, to, err := r.sockets()
	if err != nil {
		return a, err
	}
	if err := a.measureRate(from, to, air); err != nil {
		return a, err
	}
	probes := min(maxProbes, max(minPackets, int(onAir/2/(air+delay))))
	if err := a.measureDelay(from, to, air, probes); err != nil {
		return a, err
	}
	a.LateMedian, err = r.lateMedian()
	return a, err
}

// measureRate queues all packets at once, so that the radio never waits.
func (a *Accuracy) measureRate(from, to int, air time.Duration) error {
	wait := time.Duration(a.Packets)*air + delay + arrivalGrace
	arrivals := make(chan []time.Duration, 1)
	failed := make(chan error, 1)
	go func() {
		got, err := arrival.Receive(to, a.Packets, wait)
		arrivals <- got
		failed <- err
	}()
	b := make([]byte, a.PacketBytes-headers)
	for i := range a.Packets {
		binary.BigEndian.PutUint32(b, uint32(i))
		if err := unix.Send(from, b, 0); err != nil {
			return errors.Join(fmt.Errorf("send: %w", err), <-failed)
		}
		if i%200 == 199 {
			time.Sleep(time.Millisecond) // the device's own queue is short
		}
	}
	at := <-arrivals
	if err := <-failed; err != nil {
		return err
	}
	if len(at) != a.Packets {
		return fmt.Errorf("at %s: %d of %d packets arrived", bits(a.BitsPerSecond), len(at), a.Packets)
	}
	span := at[len(at)-1] - at[0]
	a.RateError = float64(len(at)-1)*float64(a.PacketBytes*8)/span.Seconds()/a.BitsPerSecond - 1
	return nil
}

// measureDelay sends packets one at a time over the idle link.
func (a *Accuracy) measureDelay(from, to int, air time.Duration, probes int) error {
	b := make([]byte, a.PacketBytes-headers)
	var delayErrors []time.Duration
	for range probes {
		sent := arrival.Now()
		if err := unix.Send(from, b, 0); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		got, err := arrival.Receive(to, 1, air+delay+arrivalGrace)
		if err != nil {
			return err
		}
		if len(got) != 1 {
			return fmt.Errorf("at %s: a single packet did not arrive", bits(a.BitsPerSecond))
		}
		delayErrors = append(delayErrors, got[0]-sent-air-delay)
	}
	slices.Sort(delayErrors)
	a.DelayMedian = delayErrors[len(delayErrors)/2]
	a.DelayP99 = delayErrors[(len(delayErrors)*99)/100]
	return nil
}

// MeasureLimit sends packets as fast as one thread can over a link that is
// faster than that, and counts what comes out.
func MeasureLimit(packetBytes int, during time.Duration) (l Limit, err error) {
	l = Limit{PacketBytes: packetBytes}
	r, err := newRig(network(1e11, 0, radio.Queue{Bytes: 4 << 20}))
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	from, _, err := r.sockets() // the receiver is open, and nothing reads from it
	if err != nil {
		return l, err
	}
	b := make([]byte, packetBytes-headers)
	// The receiving socket's buffer is left full: the packets that matter are
	// those that the loop has written.
	if _, err := sendUntil(time.Now().Add(200*time.Millisecond), from, b); err != nil {
		return l, err
	}
	time.Sleep(measurePause)
	_, cpuBefore, err := r.carried() // and zeroes the count
	if err != nil {
		return l, err
	}
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	start := time.Now()
	sent, err := sendUntil(start.Add(during), from, b)
	if err != nil {
		return l, err
	}
	took := time.Since(start)
	runtime.ReadMemStats(&m1)
	time.Sleep(measurePause)
	count, cpuAfter, err := r.carried()
	if err != nil {
		return l, err
	}
	packets, cpu := float64(count), (cpuAfter - cpuBefore).Seconds()
	if packets == 0 || cpu <= 0 {
		return l, fmt.Errorf("nothing was carried (%g packets, %g s of processor time)", packets, cpu)
	}
	l.PacketsPerSecond = packets / took.Seconds()
	l.BitsPerSecond = l.PacketsPerSecond * float64(packetBytes) * 8
	l.CPUShare = cpu / took.Seconds()
	l.PerCorePackets = packets / cpu
	l.PerCoreBits = l.PerCorePackets * float64(packetBytes) * 8
	l.AllocationsAPacket = float64(m1.Mallocs-m0.Mallocs) / packets
	l.LostInKernelPackets = sent - count
	return l, nil
}

// sendUntil sends copies of a packet as fast as it can, and returns how many.
func sendUntil(end time.Time, socket int, packet []byte) (sent int64, err error) {
	for time.Now().Before(end) {
		for range 64 {
			// Not through Go's scheduler: the sender must not be slower than the loop.
			_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(socket), uintptr(unsafe.Pointer(unsafe.SliceData(packet))), uintptr(len(packet)), 0, 0, 0)
			if errno != 0 && errno != unix.ENOBUFS && errno != unix.EAGAIN {
				return sent, fmt.Errorf("send: %w", errno)
			}
			sent++
		}
		runtime.Gosched()
	}
	return sent, nil
}
