package main

import (
	"context"
	"errors"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/pattern"
	"linktrial/protocols/probe/wire"
)

// errAborted: SIGTERM before there was a probe.
var errAborted = harness.Failf(contract.CodeAborted, "SIGTERM before the server had answered")

// errServerGone: nobody has the server's port any more.
var errServerGone = harness.Failf(contract.CodeReset, "the server has ended: its node refuses packets")

// client is the end of a probe that opens and ends it.
type client struct {
	p      *contract.Parameters
	key    *wire.Key
	conn   way
	dccp   *dccpConn // conn, where it is one
	header int       // bytes of IP and UDP before a datagram
	out    *harness.Reporter
}

// carry carries one probe.
func carry(ctx context.Context, p *contract.Parameters, out *harness.Reporter) error {
	spec, err := pattern.Read(p.Options)
	if err != nil {
		return harness.Failf(contract.CodeBadParameters, "%w", err)
	}
	id, err := contract.ParseTransferID(p.Transfer.ID)
	if err != nil {
		return harness.Failf(contract.CodeBadParameters, "%w", err)
	}
	began := time.Now()
	c := &client{p: p, key: wire.NewKey(id, p.Transfer.Seed), out: out}
	info, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }() // nothing that was sent waits for it
	end := c.send
	if p.Transfer.FromServer {
		end = c.receive
	}
	r, err := end(ctx, began, spec)
	_, _ = c.conn.Write(c.key.Bye()) // also where it failed: the server need not wait for more
	if err != nil {
		return err
	}
	r.Info = info
	out.Sample(p.Transfer.ID, r.Final)
	out.Result(p.Transfer.ID, r)
	return nil
}

// dial opens the client's way to the server. The info is what only the connection shows.
func (c *client) dial(ctx context.Context) (*contract.Info, error) {
	local, remote, err := harness.ClientAddrPorts(c.p)
	if err != nil {
		return nil, err
	}
	c.header = headerBytes(remote.Addr())
	s := settingsOf(c.p)
	if !s.dccp {
		c.conn, err = dialUDP(ctx, c.p, local, remote)
		return nil, err
	}
	conn, err := dialDCCP(ctx, c.p, local, remote)
	if err != nil {
		return nil, err
	}
	c.conn, c.dccp = conn, conn
	info, err := conn.info(s.ccid)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return info, nil
}

// hello asks the server until it answers, and reports the probe as connected.
func (c *client) hello(ctx context.Context, began time.Time, what []byte, answer func(b []byte, arrived int64) bool) (connect time.Duration, err error) {
	limit := time.Time{}
	if ms := c.p.Limits.ConnectMS; ms > 0 {
		limit = began.Add(time.Duration(ms) * time.Millisecond)
	}
	defer context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })()
	ok, err := ask(ctx, c.conn, what, limit, answer)
	switch {
	case ctx.Err() != nil:
		return 0, errAborted
	case err != nil:
		return 0, err
	case !ok:
		return 0, harness.Failf(contract.CodeConnectTimeout, "no answer of the server within limits.connect_ms (%d ms)", c.p.Limits.ConnectMS)
	}
	connect = time.Since(began)
	c.out.Connected(c.p.Transfer.ID, connect)
	return connect, nil
}

// send carries a probe whose packets the client sends.
func (c *client) send(ctx context.Context, began time.Time, spec *pattern.Spec) (*contract.Result, error) {
	s := &sender{
		id: c.p.Transfer.ID, key: c.key, conn: c.conn, out: c.out, errRefused: errServerGone,
		lasts: time.Duration(c.p.Transfer.DurationMS) * time.Millisecond, limit: time.Duration(c.p.Limits.TransferMS) * time.Millisecond,
		interval: time.Duration(c.p.SampleIntervalMS) * time.Millisecond, header: c.header,
	}
	if c.dccp != nil {
		s.largest = c.dccp.largest
	}
	var err error
	if s.log, err = openLog(c.p, s.id, sentColumns); err != nil {
		return nil, err
	}
	defer s.log.close()
	connect, err := c.hello(ctx, began, c.key.Hello(), func(b []byte, _ int64) bool { return c.key.IsHere(b) })
	if err != nil {
		return nil, err
	}
	// What ends the packets does not end the question for the metrics.
	metrics, err := s.run(context.WithoutCancel(ctx), ctx.Done(), spec)
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(s.begin)
	return &contract.Result{SizeBytes: s.sent.Bytes, ElapsedNS: elapsed.Nanoseconds(), ConnectNS: connect.Nanoseconds(), Final: s.sample(elapsed), Probe: metrics}, nil
}
