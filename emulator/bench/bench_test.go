package bench

import (
	"os"
	"testing"
	"time"
)

// TestValues runs the measurements in short, for what cannot depend on how
// busy the machine is: that packets arrive and values come out.
func TestValues(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces and TUN devices")
	}
	a, err := MeasureAccuracy(2e6, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", a)
	if a.Packets < minPackets || a.BitsPerSecond != 2e6 {
		t.Errorf("%+v", a)
	}
	// A single packet cannot be early.
	if a.DelayMedian < -100*time.Microsecond {
		t.Errorf("packets arrive %s before they are due", -a.DelayMedian)
	}
	l, err := MeasureLimit(fullPacket, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", l)
	if l.PerCoreBits <= 0 || l.PacketsPerSecond <= 0 {
		t.Errorf("%+v", l)
	}
}

func BenchmarkCarry(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root: makes network namespaces and TUN devices")
	}
	for range b.N {
		l, err := MeasureLimit(fullPacket, time.Second)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(l.PerCorePackets, "packets/core-s")
		b.ReportMetric(l.PerCoreBits/1e6, "Mbit/core-s")
		b.ReportMetric(l.AllocationsAPacket, "allocs/packet")
	}
}
