package credible

import (
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// TestCapacity: a way carries no more than its slowest hop, and a search takes no longer
// than its probe.
func TestCapacity(t *testing.T) {
	n := &radio.Network{MTUBytes: 1500, Nodes: []radio.Node{{Role: radio.RoleClient}, {Role: radio.RoleRelay}, {Role: radio.RoleServer}}, Links: []radio.Link{
		{A: radio.RoleClient, B: radio.RoleRelay, RateBitsPerSecond: 2e6, Channel: radio.Channel{Model: radio.ChannelPerfect}},
		{A: radio.RoleRelay, B: radio.RoleServer, RateBitsPerSecond: 1e6, Channel: radio.Channel{Model: radio.ChannelPerfect}},
	}}
	f := &Flow{From: radio.RoleServer, To: radio.RoleClient}
	for bps, want := range map[int64]string{990_000: "", 1_090_000: "", 1_200_000: journal.ReasonFasterThanRadio} {
		p := &contract.ProbeMetrics{Capacity: &contract.Capacity{MaximumBPS: bps}}
		got := ""
		if x := Capacity(n, f, p); x != nil {
			got = x.Reason
		}
		if got != want {
			t.Errorf("%d bit/s: %q, expected %q", bps, got, want)
		}
	}
	if x := Capacity(n, f, &contract.ProbeMetrics{}); x != nil {
		t.Errorf("a probe that is no search: %+v", x)
	}
	for held, want := range map[time.Duration]string{5 * time.Second: "", 8 * time.Second: journal.ReasonLongerThanRun} {
		p := &contract.ProbeMetrics{Capacity: &contract.Capacity{SearchNS: 4e9, HeldNS: held.Nanoseconds()}}
		got := ""
		if x := Probe(p, 10*time.Second, &Tolerance{}); x != nil {
			got = x.Reason
		}
		if got != want {
			t.Errorf("held for %s: %q, expected %q", held, got, want)
		}
	}
}

// TestMessages: a message takes no less than the slowest hop needs for all of its packets,
// and no longer than its probe.
func TestMessages(t *testing.T) {
	n := &radio.Network{MTUBytes: 1500, Nodes: []radio.Node{{Role: radio.RoleClient}, {Role: radio.RoleRelay}, {Role: radio.RoleServer}}, Links: []radio.Link{
		{A: radio.RoleClient, B: radio.RoleRelay, RateBitsPerSecond: 2e6, Delay: 20 * time.Millisecond, Channel: radio.Channel{Model: radio.ChannelPerfect}},
		{A: radio.RoleRelay, B: radio.RoleServer, RateBitsPerSecond: 64e3, Delay: 30 * time.Millisecond, Channel: radio.Channel{Model: radio.ChannelPerfect}},
	}}
	f := &Flow{From: radio.RoleClient, To: radio.RoleServer}
	message := func(bytes, packets int64, took time.Duration) *contract.ProbeMetrics {
		return &contract.ProbeMetrics{Delay: &contract.Delays{}, Messages: []contract.MessagesOfSize{{Bytes: bytes, Packets: packets, Sent: 1, Delivered: 1,
			Time: &contract.Delays{MinNS: took.Nanoseconds(), MaxNS: took.Nanoseconds()}}}}
	}
	// 10240 bytes at 64 kbit/s take 1280 ms, and 50 ms are propagation.
	for _, x := range []struct {
		bytes, packets int64
		took           time.Duration
		want           string
	}{
		{10240, 9, 1400 * time.Millisecond, ""}, {10240, 9, 1300 * time.Millisecond, journal.ReasonFasterThanRadio},
		{20, 1, 60 * time.Millisecond, ""}, {20, 1, 45 * time.Millisecond, journal.ReasonFasterThanRadio},
	} {
		got := ""
		if fault := Messages(n, f, message(x.bytes, x.packets, x.took)); fault != nil {
			got = fault.Reason
		}
		if got != x.want {
			t.Errorf("%d bytes in %s: %q, expected %q", x.bytes, x.took, got, x.want)
		}
	}
	if fault := Messages(n, f, &contract.ProbeMetrics{Messages: []contract.MessagesOfSize{{Bytes: 20, Packets: 1, Sent: 1}}}); fault != nil {
		t.Errorf("none delivered: %+v", fault)
	}
	for took, want := range map[time.Duration]string{8 * time.Second: "", 12 * time.Second: journal.ReasonLongerThanRun} {
		got := ""
		if x := Probe(message(20, 1, took), 10*time.Second, &Tolerance{}); x != nil {
			got = x.Reason
		}
		if got != want {
			t.Errorf("a message that took %s: %q, expected %q", took, got, want)
		}
	}
}
