package wire

import (
	"reflect"
	"testing"
	"time"

	"linktrial/protocols/contract"
)

var id = contract.TransferID{1, 2, 3}

func TestRoundTrips(t *testing.T) {
	a, b := NewKey(id, 7), NewKey(id, 7)
	packet := make([]byte, 172)
	a.Packet(packet, 70_000, 300, 1e18+5)
	if step, n, at, err := b.ParsePacket(packet); err != nil || step != 70_000 || n != 300 || at != 1e18+5 {
		t.Errorf("packet: %d, %d, %d, %v", step, n, at, err)
	}
	for _, size := range []int{ShortSize, 21, 1200} {
		short := make([]byte, size)
		a.Short(short, 300, 1e18+5)
		if n, at, err := b.ParseShort(short); err != nil || n != 300 || at != 1e18+5 {
			t.Errorf("short packet: %d, %d, %v", n, at, err)
		}
		if _, _, _, err := b.ParsePacket(short); err == nil {
			t.Error("a short packet is taken for another one")
		}
	}
	sent := Sent{Packets: 5, Bytes: 700, ClockStep: 9, Unsent: 11}
	if got, ok := b.ParseEnd(a.End(sent)); !ok || got != sent {
		t.Errorf("end: %+v, %t", got, ok)
	}
	sent.Search = &Search{Step: 3, Sent: 4, HeldNS: 5e9, RateBPS: 6, HighBPS: 7, BottleneckBPS: 8, PacketBytes: 9, Payload: 3, Largest: 10, Steps: 11, SearchNS: 12, End: contract.CapacityTime}
	if got, ok := b.ParseEnd(a.End(sent)); !ok || !reflect.DeepEqual(got, sent) {
		t.Errorf("end of a search: %+v, %t", got, ok)
	}
	for _, size := range []int{0, AskSize, 1472} {
		ask := a.Ask(70_000, 9, size)
		if step, number, ok := b.ParseAsk(ask); !ok || step != 70_000 || number != 9 || len(ask) != max(size, AskSize) {
			t.Errorf("ask: %d, %d, %t, %d bytes", step, number, ok, len(ask))
		}
	}
	report := Report{Step: 70_000, Number: 9, Received: 1, Pairs: 2, PairNS: 3, GrowthNS: -4, ErrorNS: 5, SpanNS: 6, Numbers: 8, ExcessNS: 7}
	if got, ok := b.ParseReport(a.Report(report)); !ok || got != report {
		t.Errorf("report: %+v, %t", got, ok)
	}
	for _, f := range []contract.ProbeMetrics{
		{Sent: 5, Received: 5, Delay: &contract.Delays{PercentilesNS: []int64{0, 1}}, Capacity: &contract.Capacity{MaximumBPS: 1, MeanBPS: 2, PayloadBPS: 3, IntervalNS: 4, Intervals: 5, RateBPS: 6,
			HighBPS: 7, BottleneckBPS: 8, PacketBytes: 9, PayloadBytes: 10, LargestPayloadBytes: 11, HeldNS: 12, HeldSent: 13, HeldReceived: 14, Steps: 15, SearchNS: 16, End: contract.CapacityHighest,
			HeldDelay: &contract.Delays{MinNS: -1, MeanNS: 2, P50NS: 3, P95NS: 4, P99NS: 5, MaxNS: 6}}},
		{Sent: 5, Lost: 5, LossBursts: 1, LongestLossBurst: 5, Messages: []contract.MessagesOfSize{{Bytes: 20, Packets: 1, Sent: 5}}},
		{Sent: 5, Received: 5, Delay: &contract.Delays{PercentilesNS: []int64{0, 1}}, Messages: []contract.MessagesOfSize{{Bytes: 20, Packets: 1, Sent: 2, Delivered: 1,
			Time: &contract.Delays{MinNS: -1, MeanNS: 2, P50NS: 3, P95NS: 4, P99NS: 5, MaxNS: 6}}, {Bytes: 2048, Packets: 2, Sent: 1}}},
		{Sent: 5, Received: 4, Lost: 1, Duplicated: 2, Reordered: 1, Strays: 3, SentBytes: 500, ReceivedBytes: 400, LossBursts: 1, LongestLossBurst: 1,
			JitterMeanNS: 6, JitterMaxNS: 8, ClockStepNS: 9, Unsent: 12, ProcessTimes: true, Delay: &contract.Delays{MinNS: -4, MeanNS: 5, P50NS: 6, P95NS: 7, P99NS: 8, MaxNS: 9, PercentilesNS: []int64{-4, -4, 5, 1 << 40}}},
	} {
		if got, ok := a.ParseMetrics(b.Metrics(&f)); !ok || !reflect.DeepEqual(*got, f) {
			t.Errorf("metrics: %+v, %t, expected %+v", got, ok, f)
		}
	}
	if got, seed, ok := ParseHello(a.Hello()); !ok || got != id || seed != 7 {
		t.Errorf("hello: %v, %d, %t", got, seed, ok)
	}
	if got, seed, lasts, ok := ParseFetch(a.Fetch(9 * time.Second)); !ok || got != id || seed != 7 || lasts != 9*time.Second {
		t.Errorf("fetch: %v, %d, %s, %t", got, seed, lasts, ok)
	}
	if !a.IsStop(b.Stop()) || a.IsStop(b.Bye()) || a.IsBye(b.Stop()) || !a.IsUnknown(Unknowing(a.Stop())) {
		t.Error("stop")
	}
	if !a.IsHere(b.Here()) || !a.IsBye(b.Bye()) || !a.IsUnknown(Unknowing(a.End(sent))) || Unknowing(a.Bye()) != nil {
		t.Error("here, bye or unknown")
	}
}

// TestStrays: what another probe sends does not count, nor what has changed on the way.
func TestStrays(t *testing.T) {
	mine := NewKey(id, 7)
	for name, other := range map[string]*Key{"another identity": NewKey(contract.TransferID{9}, 7), "another seed": NewKey(id, 8)} {
		b := make([]byte, 100)
		other.Packet(b, 0, 1, 5)
		if _, _, _, err := mine.ParsePacket(b); err == nil {
			t.Errorf("%s: taken", name)
		}
		if _, ok := mine.ParseEnd(other.End(Sent{})); ok {
			t.Errorf("%s: end taken", name)
		}
	}
	whole := make([]byte, 60)
	mine.Packet(whole, 0, 1, 5)
	for i := range whole {
		b := append([]byte{}, whole...)
		b[i] ^= 1
		if _, _, _, err := mine.ParsePacket(b); err == nil {
			t.Errorf("byte %d changed: taken", i)
		}
	}
	for n := range whole {
		if _, _, _, err := mine.ParsePacket(whole[:n]); err == nil {
			t.Errorf("cut to %d bytes: taken", n)
		}
	}
	if _, _, _, err := mine.ParsePacket(append(whole, 0)); err == nil {
		t.Error("a byte more: taken")
	}
	short := make([]byte, 40)
	mine.Short(short, 1, 5)
	for i := range short {
		b := append([]byte{}, short...)
		b[i] ^= 1
		if _, _, err := mine.ParseShort(b); err == nil {
			t.Errorf("byte %d of a short packet changed: taken", i)
		}
		if _, _, err := mine.ParseShort(short[:i]); err == nil {
			t.Errorf("short packet cut to %d bytes: taken", i)
		}
	}
}

// FuzzMessages: what is read of messages makes the same bytes again.
func FuzzMessages(f *testing.F) {
	f.Add(appendMessages(nil, []contract.MessagesOfSize{{Bytes: 20, Packets: 1, Sent: 3, Delivered: 1, Time: &contract.Delays{MinNS: -5}}, {Bytes: 1024, Packets: 1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, rest, ok := parseMessages(b)
		if !ok {
			return
		}
		if again := append(appendMessages(nil, all), rest...); string(again) != string(b) {
			t.Errorf("%x is read as %+v, of which %x is made", b, all, again)
		}
	})
}

func FuzzParse(f *testing.F) {
	k := NewKey(id, 7)
	b := make([]byte, 40)
	k.Packet(b, 0, 1, 5)
	short := make([]byte, 20)
	k.Short(short, 1, 5)
	messages := &contract.ProbeMetrics{Messages: []contract.MessagesOfSize{{Bytes: 20, Delivered: 1, Time: &contract.Delays{}}, {Bytes: 30}}}
	for _, seed := range [][]byte{nil, b, short, k.Metrics(messages), k.Hello(), k.Here(), k.End(Sent{Packets: 1}), k.End(Sent{Search: &Search{End: contract.CapacityFound}}), k.Ask(1, 2, 50), k.Report(Report{GrowthNS: -9}), k.Bye(), k.Stop(), k.Fetch(5), k.Metrics(&contract.ProbeMetrics{})} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// What is taken was made with the key, and makes the same bytes again.
		if step, n, at, err := k.ParsePacket(b); err == nil {
			again := make([]byte, len(b))
			k.Packet(again, step, n, at)
			if string(again) != string(b) {
				t.Errorf("packet %x is taken, and %x is made of it", b, again)
			}
		}
		if n, at, err := k.ParseShort(b); err == nil {
			again := make([]byte, len(b))
			k.Short(again, n, at)
			if string(again) != string(b) {
				t.Errorf("short packet %x is taken, and %x is made of it", b, again)
			}
		}
		if s, ok := k.ParseEnd(b); ok && string(k.End(s)) != string(b) {
			t.Errorf("end %x", b)
		}
		if id, seed, lasts, ok := ParseFetch(b); ok && string(NewKey(id, seed).Fetch(lasts)) != string(b) {
			t.Errorf("fetch %x", b)
		}
		if r, ok := k.ParseReport(b); ok && string(k.Report(r)) != string(b) {
			t.Errorf("report %x", b)
		}
		k.ParseAsk(b)
		k.IsHere(b)
		k.IsStop(b)
		k.IsBye(b)
		k.IsUnknown(b)
		k.ParseMetrics(b)
		ParseHello(b)
		Unknowing(b)
	})
}
