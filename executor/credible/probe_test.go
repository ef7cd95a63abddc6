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
