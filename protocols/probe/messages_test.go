package main

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"linktrial/internal/radio"
	"linktrial/protocols/contract"
	"linktrial/protocols/probe/pattern"
	"linktrial/protocols/probe/wire"
)

// TestMessagesOfEmulatedRadios: as many messages are delivered as the radio delivered all
// packets of, and without losses each takes the time of its packets on the air.
func TestMessagesOfEmulatedRadios(t *testing.T) {
	for _, rate := range []float64{16e3, 2e6} {
		for _, loss := range []float64{0, 0.02, 0.2} {
			t.Run(fmt.Sprintf("%.0f kbit/s, loss %.2f", rate/1e3, loss), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { expectMessages(t, lineOf(rate, 30*time.Millisecond, loss, 64<<10, false)) })
			})
		}
	}
}

func expectMessages(t *testing.T, n *radio.Network) {
	t.Helper()
	const seed = 11
	rate, loss := n.Links[0].RateBitsPerSecond, n.Links[0].Channel.Loss
	options := map[string]any{"pattern": pattern.Messages, "message_kbit_per_second": rate / 2e3}
	spec, err := pattern.Read(options)
	if err != nil {
		t.Fatal(err)
	}
	key, parts := wire.NewKey(contract.TransferID{7}, seed), map[int64]int{}
	p, _, _ := probed(t, n, seed, 10*time.Minute, func(_, to *airEnd) {
		to.heard = func(b []byte) {
			if number, _, err := key.ParseShort(b); err == nil {
				parts[spec.MessageOf(int64(number)).Number]++
			}
		}
	}, options)
	want := map[int64]int64{}
	for number, packets := range parts {
		if size := spec.Messages[number%4]; packets == spec.PacketsOf(size) {
			want[int64(size)]++
		}
	}
	if len(p.Messages) != 4 || p.Lost < int64(loss*float64(p.Sent)/2) {
		t.Fatalf("%+v", p)
	}
	for i, m := range p.Messages {
		packets := []int64{1, 1, 1, 9}[i]
		if m.Bytes != []int64{20, 100, 1024, 10240}[i] || m.Packets != packets || m.Delivered != want[m.Bytes] || m.Sent < 40 || loss == 0 && m.Delivered != m.Sent {
			t.Errorf("%+v, expected %d delivered", m, want[m.Bytes])
		}
		share, lucky := float64(m.Delivered)/float64(m.Sent), math.Pow(1-loss, float64(packets))
		if spread := math.Sqrt(lucky * (1 - lucky) / float64(m.Sent)); math.Abs(share-lucky) > 4*spread+1e-9 {
			t.Errorf("%d bytes: %.3f delivered, expected %.3f", m.Bytes, share, lucky)
		}
		// 28 bytes of headers and 40 of the frame; the sender needs 30 µs for each packet.
		air := 30*time.Millisecond + time.Duration(float64(8*(m.Bytes+68*packets))/rate*1e9)
		if loss > 0 || m.Time == nil {
			continue
		}
		for name, ns := range map[string]int64{"least": m.Time.MinNS, "median": m.Time.P50NS, "95 %": m.Time.P95NS, "longest": m.Time.MaxNS} {
			if off := time.Duration(ns) - air; off < 0 || off > 300*time.Microsecond {
				t.Errorf("%d bytes, %s: %s, expected %s", m.Bytes, name, time.Duration(ns), air)
			}
		}
	}
	if got, err := contract.ParseEvent(eventOf(t, p)); err != nil || len(got.Result.Probe.Messages) != 4 {
		t.Errorf("%v", err)
	}
}

// TestMessagesCutShort: a message of which not all packets were sent does not count.
func TestMessagesCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := map[string]any{"pattern": pattern.Messages, "messages": "65536", "message_packet": int64(64)}
		// A packet takes the sender 30 µs: 1024 of them, and 30 ms are up before.
		p, _, _ := probed(t, lineOf(1e9, time.Millisecond, 0, 8<<20, false), 1, 20*time.Millisecond, func(*airEnd, *airEnd) {}, options)
		if m := p.Messages; p.Sent == 0 || len(m) != 1 || m[0].Sent != 0 || m[0].Delivered != 0 || m[0].Packets != 1024 {
			t.Errorf("%+v of %d packets", m, p.Sent)
		}
	})
}
