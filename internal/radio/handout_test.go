package radio

import (
	"strings"
	"testing"
	"time"
)

const handedOut = `name: r
title: R
manufacturer: M
model: M
waveform: W
figures: []
emulation:
  medium: {value: full-duplex, source: s}
  rate: {value: 1 Mbit/s, source: s}
  processing_delay: {value: 1ms, source: s}
  mtu: {value: 1500 B, source: s}
  queue: {bytes: 64 KiB, source: s}
  channel: {model: perfect, source: s}
  reordering: {share: 0.02, delay: 30ms, source: s}
  duplication: {share: 0.001, source: s}
`

// The keys are read, become parameters with their source, reach the network, and are refused
// where they cannot be.
func TestReorderingAndDuplication(t *testing.T) {
	p, err := ParseProfile("r.yaml", []byte(handedOut))
	if err != nil {
		t.Fatal(err)
	}
	if r, d := p.Emulation.Reordering, p.Emulation.Duplication; *r != (Reordering{0.02, 30 * time.Millisecond}) || *d != (Duplication{0.001}) {
		t.Errorf("%+v, %+v", r, d)
	}
	for name, value := range map[string]float64{"emulation.reordering.share": 0.02, "emulation.reordering.delay": 30, "emulation.duplication.share": 0.001} {
		if f, ok := p.ParameterOf(name); !ok || f.Value != value || f.Source != "s" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for from, c := range map[string][2]string{
		"share: 0.02":  {"share: 1.5", "reordering.share"},
		"delay: 30ms,": {"", "reordering.delay"},
		"share: 0.001": {"share: -1", "duplication.share"},
	} {
		_, err := ParseProfile("r.yaml", []byte(strings.Replace(handedOut, from, c[0], 1)))
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, expected a problem of %s", c[0], err, c[1])
		}
	}
}
