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
	a.Packet(packet, 300, 1e18+5)
	if n, at, err := b.ParsePacket(packet); err != nil || n != 300 || at != 1e18+5 {
		t.Errorf("packet: %d, %d, %v", n, at, err)
	}
	sent := Sent{Packets: 5, Bytes: 700, ClockStep: 9, Unsent: 11}
	if got, ok := b.ParseEnd(a.End(sent)); !ok || got != sent {
		t.Errorf("end: %+v, %t", got, ok)
	}
	for _, f := range []contract.ProbeMetrics{
		{Sent: 5, Lost: 5, LossBursts: 1, LongestLossBurst: 5},
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
		other.Packet(b, 1, 5)
		if _, _, err := mine.ParsePacket(b); err == nil {
			t.Errorf("%s: taken", name)
		}
		if _, ok := mine.ParseEnd(other.End(Sent{})); ok {
			t.Errorf("%s: end taken", name)
		}
	}
	whole := make([]byte, 60)
	mine.Packet(whole, 1, 5)
	for i := range whole {
		b := append([]byte{}, whole...)
		b[i] ^= 1
		if _, _, err := mine.ParsePacket(b); err == nil {
			t.Errorf("byte %d changed: taken", i)
		}
	}
	for n := range whole {
		if _, _, err := mine.ParsePacket(whole[:n]); err == nil {
			t.Errorf("cut to %d bytes: taken", n)
		}
	}
	if _, _, err := mine.ParsePacket(append(whole, 0)); err == nil {
		t.Error("a byte more: taken")
	}
}

func FuzzParse(f *testing.F) {
	k := NewKey(id, 7)
	b := make([]byte, 40)
	k.Packet(b, 1, 5)
	for _, seed := range [][]byte{nil, b, k.Hello(), k.Here(), k.End(Sent{1, 2, 3, 4}), k.Bye(), k.Stop(), k.Fetch(5), k.Metrics(&contract.ProbeMetrics{})} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// What is taken was made with the key, and makes the same bytes again.
		if n, at, err := k.ParsePacket(b); err == nil {
			again := make([]byte, len(b))
			k.Packet(again, n, at)
			if string(again) != string(b) {
				t.Errorf("packet %x is taken, and %x is made of it", b, again)
			}
		}
		if s, ok := k.ParseEnd(b); ok && string(k.End(s)) != string(b) {
			t.Errorf("end %x", b)
		}
		if id, seed, lasts, ok := ParseFetch(b); ok && string(NewKey(id, seed).Fetch(lasts)) != string(b) {
			t.Errorf("fetch %x", b)
		}
		k.IsHere(b)
		k.IsStop(b)
		k.IsBye(b)
		k.IsUnknown(b)
		k.ParseMetrics(b)
		ParseHello(b)
		Unknowing(b)
	})
}
