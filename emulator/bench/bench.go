// Package bench measures the emulator's own error and its limits, with real
// packets through real TUN devices in network namespaces of its own. Comes in:
// nothing. Goes out: a table. Needs root.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"
	"time"

	"linktrial/internal/radio"
)

// Rates are the rates at which rate and delay error are measured, in bit/s.
var Rates = []float64{16e3, 64e3, 256e3, 1e6, 2e6, 8e6, 37e6}

// What the emulator has to reach, and how it is measured.
const (
	RateErrorLimit        = 0.01             // share of the rate
	DelayErrorLimit       = time.Millisecond // at the median
	ThroughputGoal        = 500e6            // bit/s on one core
	delay                 = 20 * time.Millisecond
	perRate               = 3 * time.Second // on the air, for the rate
	throughputFor         = 3 * time.Second
	fullPacket            = 1500
	measurePause          = 50 * time.Millisecond
	arrivalGrace          = 2 * time.Second
	minPackets, maxProbes = 20, 100
)

// ErrMissed reports that a value missed its goal; the table says which.
var ErrMissed = errors.New("a value of the emulator missed its goal")

// Accuracy is what was measured at one rate.
type Accuracy struct {
	BitsPerSecond float64
	PacketBytes   int
	Packets       int
	RateError     float64       // share: measured/configured − 1
	DelayMedian   time.Duration // error: measured − configured, one way
	DelayP99      time.Duration // or the maximum, of few packets
	LateMedian    time.Duration // as the emulator itself reports it
}

// Missed reports whether a value is beyond its limit.
func (a Accuracy) Missed() bool {
	return math.Abs(a.RateError) > RateErrorLimit || a.DelayMedian.Abs() > DelayErrorLimit
}

// Limit is the most that the loop carries.
type Limit struct {
	PacketBytes         int
	PacketsPerSecond    float64 // came out, in real time
	BitsPerSecond       float64
	CPUShare            float64 // of one core, in the loop's thread
	PerCorePackets      float64 // packets per second of the loop's processor time
	PerCoreBits         float64
	AllocationsAPacket  float64 // in the whole process
	LostInKernelPackets int64   // sent, and dropped before the loop read them
}

// Run measures and prints a table. It takes about a minute; ctx ends it
// between two measurements. The error is ErrMissed where a goal was missed.
func Run(ctx context.Context, w io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("the emulator's bench makes network namespaces, which needs root: run it with sudo")
	}
	missed := false
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "Emulated radio: rate and delay error (goal: rate within %g %%, delay within %s at the median)\n\n", 100*RateErrorLimit, DelayErrorLimit)
	fmt.Fprintln(t, "rate\tpacket\tpackets\trate error\tdelay error, median\t99th percentile\tloop late, median\t\t")
	for _, rate := range Rates {
		if err := ctx.Err(); err != nil {
			return err
		}
		a, err := MeasureAccuracy(rate, perRate)
		if err != nil {
			return err
		}
		missed = missed || a.Missed()
		fmt.Fprintf(t, "%s\t%d B\t%d\t%+.4f %%\t%s\t%s\t%s\t%s\t\n", bits(rate), a.PacketBytes, a.Packets, 100*a.RateError,
			a.DelayMedian.Round(time.Microsecond), a.DelayP99.Round(time.Microsecond), a.LateMedian.Round(time.Microsecond), verdict(!a.Missed()))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nEmulated radio: the most that one core carries (goal: over %s)\n\n", bits(ThroughputGoal))
	fmt.Fprintln(t, "packet\tcarried\t\tloop's share of a core\ton one whole core\t\tallocations a packet\t\t")
	for _, size := range []int{100, fullPacket} {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := MeasureLimit(size, throughputFor)
		if err != nil {
			return err
		}
		note := ""
		if size == fullPacket {
			ok := l.PerCoreBits >= ThroughputGoal
			missed = missed || !ok
			note = verdict(ok)
		}
		fmt.Fprintf(t, "%d B\t%.0f packets/s\t%s\t%.0f %%\t%.0f packets/s\t%s\t%.3f\t%s\t\n", size, l.PacketsPerSecond, bits(l.BitsPerSecond),
			100*l.CPUShare, l.PerCorePackets, bits(l.PerCoreBits), l.AllocationsAPacket, note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if missed {
		return ErrMissed
	}
	return nil
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "MISSED"
}

func bits(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.4g Mbit/s", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.4g kbit/s", v/1e3)
	}
	return fmt.Sprintf("%.4g bit/s", v)
}

// network is two radios, full duplex, without losses.
func network(rate float64, oneWay time.Duration, queue radio.Queue) *radio.Network {
	return &radio.Network{
		MTUBytes: fullPacket, Medium: radio.MediumFullDuplex, Queue: queue,
		Nodes: []radio.Node{{Role: radio.RoleClient, Address: radio.Addresses[radio.RoleClient]}, {Role: radio.RoleServer, Address: radio.Addresses[radio.RoleServer]}},
		Links: []radio.Link{{A: radio.RoleClient, B: radio.RoleServer, RateBitsPerSecond: rate, Delay: oneWay, Channel: radio.Channel{Model: radio.ChannelPerfect}}},
	}
}
