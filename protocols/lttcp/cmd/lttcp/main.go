// Command lttcp is the driver of LT-TCP. Comes in and goes out: the driver
// contract (docs/driver-contract.md).
package main

import (
	"context"
	_ "embed"
	"math"
	"strconv"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/lttcp"
)

//go:embed driver.yaml
var manifest []byte

func main() {
	harness.Main(manifest, harness.Driver{Query: query, Listen: listen, Dial: dial})
}

// implementation is the version of the protocol, which both ends have to have.
const implementation = "lttcp 1"

// openQueue is the queue of a transfer of fixed duration: what has not been sent
// when the time is up would be sent all the same.
const openQueue = 64 << 10

func query(context.Context, *contract.Parameters) (*contract.Info, error) {
	return &contract.Info{Implementation: implementation}, nil
}

// options of a connection, from those of the plan. The device is none of them: the
// address is the radio's (driver contract, P10).
func options(p *contract.Parameters) (lttcp.Options, error) {
	number := func(name string) int {
		n, _ := p.Options[name].(int64)
		return int(n)
	}
	on := func(name string) bool {
		v, _ := p.Options[name].(bool)
		return v
	}
	o := lttcp.Options{
		MSS: number("mss"), Segment: number("mss_max"), Least: number("mss_min"), Granularity: number("granularity"),
		Buffer: number("receive_buffer"), Queue: number("send_queue"),
		FixedSegment: !on("adaptive_mss"), NoProactive: !on("proactive_fec"), NoReactive: !on("reactive_fec"),
		LossResponse: on("loss_response"), NoECN: !on("ecn"), DSCP: p.DSCP,
	}
	if o.Least > o.Segment {
		return o, harness.Failf(contract.CodeBadParameters, "options.mss_min is %d bytes, expected at most mss_max (%d)", o.Least, o.Segment)
	}
	if o.MSS > o.Segment {
		return o, harness.Failf(contract.CodeBadParameters, "options.mss is %d bytes, expected at most mss_max (%d)", o.MSS, o.Segment)
	}
	if p.Transfer.DurationMS > 0 {
		o.Queue = min(o.Queue, openQueue)
	}
	return o, nil
}

func listen(_ context.Context, p *contract.Parameters) (harness.Listener, error) {
	local, err := harness.AddrPort(p.Local, "local")
	if err != nil {
		return nil, err
	}
	o, err := options(p)
	if err != nil {
		return nil, err
	}
	l, err := lttcp.Listen(local, o)
	if err != nil {
		return nil, err
	}
	return &listener{l, o}, nil
}

type listener struct {
	*lttcp.Listener
	o lttcp.Options
}

func (l *listener) Accept() (harness.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{c, l.o}, nil
}

func dial(ctx context.Context, p *contract.Parameters) (harness.Conn, error) {
	local, remote, err := harness.ClientAddrPorts(p)
	if err != nil {
		return nil, err
	}
	o, err := options(p)
	if err != nil {
		return nil, err
	}
	c, err := lttcp.Dial(ctx, local, remote, o)
	if err != nil {
		return nil, err
	}
	return &conn{c, o}, nil
}

// conn carries the transfer.
type conn struct {
	*lttcp.Conn
	o lttcp.Options
}

func (c *conn) Close() error { return harness.CloseInTime(c.Conn) }

func (c *conn) Info() *contract.Info {
	onOff := func(off bool) string {
		if off {
			return "off"
		}
		return "on"
	}
	return &contract.Info{Implementation: implementation, Detail: map[string]string{
		"adaptive_mss":  onOff(c.o.FixedSegment),
		"proactive_fec": onOff(c.o.NoProactive),
		"reactive_fec":  onOff(c.o.NoReactive),
		"loss_response": onOff(!c.o.LossResponse),
		"ecn":           onOff(c.o.NoECN),
		"segment":       strconv.Itoa(c.Stats().Segment),
	}}
}

func (c *conn) Sample(s *contract.Sample, sender bool) {
	t := c.Stats()
	set := func(to **int64, v int64) { *to = &v }
	if sender {
		set(&s.AckedBytes, t.Acked)
		set(&s.RetransmittedBytes, t.Again)
	}
	set(&s.CwndBytes, int64(t.Window))
	set(&s.SsthreshBytes, int64(t.Threshold))
	set(&s.FlightBytes, int64(t.Flight))
	set(&s.SRTTUS, t.RTT.Microseconds())
	set(&s.RTTVarUS, t.RTTVariation.Microseconds())
	set(&s.RTOUS, t.Timeout.Microseconds())
	set(&s.Retransmits, t.Retransmits)
	set(&s.Timeouts, t.Timeouts)
	set(&s.LossEvents, t.Losses)
	s.More = map[string]float64{
		"erasure_share":      math.Round(t.Erasures*1e4) / 1e4,
		"segment_bytes":      float64(t.Segment),
		contract.MoreRepairs: float64(t.Proactive + t.Reactive),
		"pfec_sent":          float64(t.Proactive),
		"rfec_sent":          float64(t.Reactive),
		"restored":           float64(t.Restored),
		"fec_useless":        float64(t.Useless),
		"reductions":         float64(t.Reductions),
		"ecn_marks":          float64(t.Marks),
	}
}
