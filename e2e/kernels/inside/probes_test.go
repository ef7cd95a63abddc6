//go:build kernels

package inside

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"linktrial/protocols/contract"
)

// Extent of a probe, and what its values may differ by from netem's.
const (
	probeLasts   = 20 * time.Second
	probeBytes   = 100
	probeControl = 40 // packets of either end that are none of the probe's: handshake, acknowledgements beside data, questions
	// A packet of DCCP is taken by the driver, and not stamped by the kernel.
	probeTolerance = time.Millisecond
)

// probeCase is one probe over netem.
type probeCase struct {
	name string
	conditions
	perSecond float64
	// held: the congestion control must hold packets back, and the others fill the link.
	held bool
}

// TestProbes runs the driver of probes over UDP and over DCCP with each of its
// congestion controls, and holds its values to what netem was told and has counted.
func TestProbes(t *testing.T) {
	transports := []struct {
		name   string
		values map[string]any
	}{
		{"UDP", map[string]any{}},
		{"DCCP, CCID 2", map[string]any{"transport": "dccp", "ccid": 2}},
		{"DCCP, CCID 3", map[string]any{"transport": "dccp", "ccid": 3}},
	}
	cases := []probeCase{
		{"20 ms", conditions{delay: 20 * time.Millisecond}, 50, false},
		{"20 ms, loss 5 %", conditions{delay: 20 * time.Millisecond, loss: 0.05}, 50, false},
		{"20 ms, 32 kbit/s", conditions{delay: 20 * time.Millisecond, bitsPerSecond: 32_000, queue: 20}, 100, true},
	}
	for _, tr := range transports {
		for _, c := range cases {
			try(t, "probes", tr.name+": "+fmt.Sprintf("%g packets/s, ", c.perSecond)+c.name, func(t *testing.T) ([]string, error) {
				return c.probe(t, tr.values)
			})
		}
	}
	for _, tr := range transports[1:] {
		try(t, "drivers", "probe, "+tr.name, func(t *testing.T) ([]string, error) {
			return conformance(t.Context(), t, "probe", tr.values, nil)
		})
	}
}

// probe carries one probe over a way with these conditions.
func (c *probeCase) probe(t *testing.T, transport map[string]any) ([]string, error) {
	values := map[string]any{"packets_per_second": c.perSecond, "packet": probeBytes}
	for k, v := range transport {
		values[k] = v
	}
	w := netem(t, c.conditions)
	server, err := serve(w, "probe", values)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	p := parameters(contract.RoleClient, values)
	p.Transfer = contract.Transfer{ID: fmt.Sprintf("%032x", 1), Seed: 1, DurationMS: probeLasts.Milliseconds()}
	client, err := launch("probe", w.client, p)
	if err != nil {
		return nil, err
	}
	done, err := client.until(contract.KindResult)
	if err = errors.Join(err, client.cmd.Wait()); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	drops, err := dropped(w.client)
	if err != nil {
		return nil, err
	}
	f := done.Result.Probe
	measured := []string{
		fmt.Sprintf("%d offered, %d sent", f.Sent+f.Unsent, f.Sent),
		fmt.Sprintf("%d lost, netem dropped %d", f.Lost, drops),
	}
	if f.Delay == nil {
		return measured, errors.New("no packet has arrived")
	}
	measured = append(measured, fmt.Sprintf("%.3f ms least, %.3f ms mean", float64(f.Delay.MinNS)/1e6, float64(f.Delay.MeanNS)/1e6))
	return measured, c.hold(f, drops, transport["transport"] == "dccp")
}

// hold holds a probe's values to what netem was told and has counted.
func (c *probeCase) hold(f *contract.ProbeMetrics, drops int, dccp bool) (faults error) {
	wrong := func(format string, args ...any) { faults = errors.Join(faults, fmt.Errorf(format, args...)) }
	offered := int64(math.Round(c.perSecond * probeLasts.Seconds()))
	if n := f.Sent + f.Unsent; n != offered {
		wrong("%d packets sent and %d held back, expected the pattern's %d together", f.Sent, f.Unsent, offered)
	}
	if f.ProcessTimes != dccp {
		wrong("process_times is %t", f.ProcessTimes)
	}
	// netem drops the probe's packets, and those of its control.
	if drops := int64(drops); f.Lost > drops || f.Lost < drops-probeControl {
		wrong("%d packets lost, netem dropped %d, among them at most %d others", f.Lost, drops, probeControl)
	}
	if tolerated := lossDeviations * math.Sqrt(c.loss*(1-c.loss)*float64(f.Sent)); !c.held && math.Abs(float64(f.Lost)-c.loss*float64(f.Sent)) > tolerated {
		wrong("%d of %d packets lost, expected %g %% ± %.0f", f.Lost, f.Sent, c.loss*100, tolerated)
	}
	least := c.delay
	if c.bitsPerSecond > 0 {
		least += time.Duration((probeBytes + headerBytes + ethernetHead) * 8 / c.rate() * 1e9)
	}
	if d := time.Duration(f.Delay.MinNS); d < least || !c.held && d > least+probeTolerance {
		wrong("the least delay is %s, expected %s and at most %s more", d, least, probeTolerance)
	}
	return errors.Join(faults, c.holdLoad(f, dccp))
}

// rate is netem's, which counts the Ethernet header.
func (c *probeCase) rate() float64 {
	return c.bitsPerSecond * (packetBytes + ethernetHead) / packetBytes
}

// holdLoad holds a probe to the link's rate that offers more than it carries: over UDP
// the link drops the rest, over DCCP the congestion control holds most of it back.
func (c *probeCase) holdLoad(f *contract.ProbeMetrics, dccp bool) error {
	fits := c.rate() / 8 / (probeBytes + headerBytes + ethernetHead) * probeLasts.Seconds()
	switch {
	case !dccp && f.Unsent > 0:
		return fmt.Errorf("%d packets held back over UDP, which has no congestion control", f.Unsent)
	case !c.held || !dccp:
		return nil
	case float64(f.Sent) > fits+float64(c.queue):
		return fmt.Errorf("%d packets sent, the link carries %.0f of UDP", f.Sent, fits)
	case f.Unsent < 2*f.Lost:
		return fmt.Errorf("%d packets held back and %d lost, expected most of what does not fit to be held back", f.Unsent, f.Lost)
	}
	return nil
}
