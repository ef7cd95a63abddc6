// Command haul is the driver of haul, Linktrial's own transport. Comes in and
// goes out: the driver contract (docs/driver-contract.md).
package main

import (
	"context"
	_ "embed"
	"errors"
	"strconv"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/haul"
	"linktrial/protocols/haul/option"
)

//go:embed driver.yaml
var manifest []byte

func main() {
	harness.Main(manifest, harness.Driver{Query: query, Listen: listen, Dial: dial})
}

func query(context.Context, *contract.Parameters) (*contract.Info, error) {
	return &contract.Info{Implementation: option.Implementation}, nil
}

// options of a connection, from those of the plan.
func options(p *contract.Parameters) (haul.Options, error) {
	o, err := option.Read(p.Options, "", p.Link)
	o.DSCP = p.DSCP
	if p.Transfer.DurationMS > 0 {
		// What has not been sent when the time is up would be sent all the same.
		o.Queue = min(o.Queue, 16<<10)
	}
	return o, err
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
	l, err := haul.Listen(local, o)
	if err != nil {
		return nil, err
	}
	return &listener{l, o}, nil
}

type listener struct {
	*haul.Listener
	o haul.Options
}

func (l *listener) Accept() (harness.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c, l.o), nil
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
	c, err := haul.Dial(ctx, local, remote, o)
	if errors.Is(err, haul.ErrRefused) {
		return nil, harness.Failf(contract.CodeConnectRefused, "%w", err)
	}
	if err != nil {
		return nil, err
	}
	return newConn(c, o), nil
}

// conn carries the transfer over the connection's stream 0.
type conn struct {
	*haul.Stream
	c *haul.Conn
	o haul.Options
}

func newConn(c *haul.Conn, o haul.Options) *conn { return &conn{c.Stream(0), c, o} }

func (c *conn) Close() error { return harness.CloseInTime(c.c) }

func (c *conn) Abort() { c.c.Abort("the transfer was aborted") }

func (c *conn) Info() *contract.Info {
	s := c.c.Stats()
	return &contract.Info{Implementation: option.Implementation, Detail: map[string]string{
		"encryption": map[bool]string{true: "plain", false: "noise"}[c.o.Plain],
		"key":        map[bool]string{true: "none", false: "pre-shared"}[len(c.o.Key) == 0],
		"packet":     strconv.Itoa(s.Packet),
		"coding":     map[bool]string{true: "off", false: "on"}[c.o.NoCoding],
	}}
}

func (c *conn) Sample(s *contract.Sample, sender bool) {
	t := c.c.Stats()
	set := func(to **int64, v int64) { *to = &v }
	setFloat := func(to **float64, v float64) { *to = &v }
	if sender {
		set(&s.AckedBytes, int64(t.BytesDelivered))
		set(&s.RetransmittedBytes, int64(t.BytesAgain))
	}
	set(&s.CwndBytes, int64(t.Window))
	set(&s.FlightBytes, int64(t.InFlight))
	set(&s.SRTTUS, t.RTT.Microseconds())
	if t.MinRTT > 0 {
		set(&s.MinRTTUS, t.MinRTT.Microseconds())
	}
	set(&s.RTTVarUS, t.RTTVariation.Microseconds())
	set(&s.RTOUS, t.Timeout.Microseconds())
	set(&s.Retransmits, int64(t.Retransmits))
	set(&s.Timeouts, int64(t.Timeouts))
	set(&s.LossEvents, int64(t.PacketsLost))
	setFloat(&s.PacingBPS, t.Pacing*8)
	setFloat(&s.BandwidthBPS, t.Rate*8)
	s.More = map[string]float64{
		contract.MoreRepairs: float64(t.Repairs),
		"recovered":          float64(t.Recovered),
		"loss_share":         t.Loss,
		"burst_packets":      t.Burst,
		"queue_us":           float64(t.Queue.Microseconds()),
		"acks_sent":          float64(t.AcksSent),
	}
}
