package measure

import (
	"testing"

	"linktrial/protocols/contract"
	"linktrial/protocols/probe/wire"
)

// TestReport: what is told of a step is of its packets alone.
func TestReport(t *testing.T) {
	c := &Capacity{}
	c.Arrive(1, 0, 0, 5*ms)
	for i := range int64(10) { // each waits 3 ms more than the one before; the sixth is lost
		if i != 5 {
			c.Arrive(2, uint32(10+i), 10*ms*i, 10*ms*i+20*ms+3*ms*i)
		}
	}
	if c.Arrive(1, 1, 0, 900*ms) { // late
		t.Error("a late packet of another step warns")
	}
	want := wire.Report{Step: 2, Number: 7, Received: 9, Pairs: 7, PairNS: 7 * 13 * ms, GrowthNS: 27 * ms, SpanNS: 117 * ms, Numbers: 9, ExcessNS: 42 * ms}
	if got := c.Report(2, 7); got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
	if got := c.Report(3, 8); got != (wire.Report{Step: 3, Number: 8}) {
		t.Errorf("of a step without packets: %+v", got)
	}
	if c.Arrive(2, 20, 100*ms, 2000*ms) || !c.Arrive(2, 21, 110*ms, 2200*ms) || c.Arrive(2, 22, 120*ms, 2300*ms) || !c.Arrive(2, 23, 130*ms, 4300*ms) {
		t.Error("expected a warning from 2 s on, and the next one 2 s later")
	}
}

// TestResult: sub-intervals end with arrivals, and the most that was received in one is
// the capacity.
func TestResult(t *testing.T) {
	c := &Capacity{}
	at := int64(0)
	// 100 a second, 80, 100: the first sub-interval ends with the first packet of the 80.
	for i := range int64(400) {
		pause := int64(10 * ms)
		if i >= 100 && i < 300 {
			pause = 12.5 * ms
		}
		at += pause
		c.Arrive(4, uint32(i), at-30*ms, at)
	}
	s := &wire.Search{Step: 4, Sent: 410, HeldNS: 4490 * ms, RateBPS: 80_000, HighBPS: 81_000, BottleneckBPS: 80_500, PacketBytes: 100, Payload: 72, Largest: 1472, Steps: 5, SearchNS: 6, End: contract.CapacityFound}
	got := c.Result(s)
	if got == nil || got.MaximumBPS != 79_800 || got.PayloadBPS != 57_456 || got.MeanBPS != 71_091 || got.IntervalNS != 1e9 || got.Intervals != 4 ||
		got.HeldSent != 410 || got.HeldReceived != 400 || got.HeldDelay.MinNS != 30*ms || got.HeldDelay.MaxNS != 30*ms || got.LargestPayloadBytes != 1472 {
		t.Errorf("%+v", got)
	}
	s.Step = 3
	if got := c.Result(s); got != nil {
		t.Errorf("of another step: %+v", got)
	}
}
