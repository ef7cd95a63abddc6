package protocoltest

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// fetch carries a probe from the server at the client of [probePackets].
func (c *probeClient) fetch(ctx context.Context, began time.Time) error {
	id := c.p.Transfer.ID
	if _, err := c.ask(ctx, &probeMessage{Kind: "fetch", ID: id, N: c.p.Transfer.DurationMS}, "here", began.Add(time.Duration(c.p.Limits.ConnectMS)*time.Millisecond)); err != nil {
		return c.told(err, contract.CodeConnectTimeout)
	}
	connect := time.Since(began)
	c.out.Connected(id, connect)
	c.began = time.Now()
	x := &probeSession{began: c.began, seen: map[int64]bool{}, highest: -1}
	ends := c.began.Add(time.Duration(c.p.Limits.TransferMS) * time.Millisecond)
	var ended *probeMessage
	settled := ends
	buf := make([]byte, 64<<10)
	for ended == nil || x.f.Received < ended.Sent && time.Now().Before(settled) {
		if time.Now().After(ends) {
			return harness.Failf(contract.CodeTransferTimeout, "no end")
		}
		kind := "alive"
		if ctx.Err() != nil && ended == nil {
			kind = "stop"
		}
		_, _ = c.conn.Write((&probeMessage{Kind: kind, ID: id}).bytes())
		_ = c.conn.SetReadDeadline(time.Now().Add(probeAgain / 4))
		n, err := c.conn.Read(buf)
		if time.Since(x.sampled) > probeAgain && x.f.Received > 0 {
			x.sampled = time.Now()
			c.out.Sample(id, x.sample())
		}
		var m probeMessage
		if err != nil || json.Unmarshal(buf[:n], &m) != nil || m.ID != id {
			if err != nil && !os.IsTimeout(err) {
				return harness.Failf(contract.CodeReset, "the server has ended")
			}
			continue
		}
		switch m.Kind {
		case "packet":
			x.packet(c.fault, &m, n)
		case "end":
			if ended == nil {
				ended, settled = &m, time.Now().Add(time.Second)
			}
		}
	}
	if c.fault == "probe-mixes-probes" {
		x.f.Strays++
	}
	x.settle(c.fault, ended.Sent, ended.N)
	final := x.sample()
	final.ElapsedNS = time.Since(c.began).Nanoseconds()
	_, _ = c.ask(context.WithoutCancel(ctx), &probeMessage{Kind: "values", ID: id, Values: &x.f}, "bye", ends)
	c.out.Sample(id, final)
	c.out.Result(id, probeResult(c.fault, &contract.Result{SizeBytes: x.f.ReceivedBytes, ElapsedNS: final.ElapsedNS, ConnectNS: connect.Nanoseconds(), Final: final, Probe: &x.f}))
	return nil
}

// probeSending is a probe from the server at the server.
type probeSending struct {
	stop    chan struct{}
	stopped bool
	done    bool
	values  chan *contract.ProbeMetrics
	heard   time.Time // of the client
}

// takeSending takes a datagram of a probe from the server; false: it is of another.
func (s *probeServer) takeSending(m *probeMessage, answer func(*probeMessage)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sending[m.ID]
	if x == nil && m.Kind != "fetch" {
		return false
	}
	if x != nil {
		x.heard = time.Now()
	}
	switch m.Kind {
	case "fetch":
		answer(&probeMessage{Kind: "here", ID: m.ID})
		if x != nil {
			return true
		}
		x = &probeSending{stop: make(chan struct{}), values: make(chan *contract.ProbeMetrics, 1), heard: time.Now()}
		s.sending[m.ID] = x
		s.out.Connected(m.ID, 0)
		go s.sendTo(m.ID, x, time.Duration(m.N)*time.Millisecond, answer)
	case "stop":
		if !x.stopped && s.fault != "probe-ignores-stop" {
			x.stopped = true
			close(x.stop)
		}
	case "values":
		if x.done {
			answer(&probeMessage{Kind: "bye", ID: m.ID})
			return true
		}
		select {
		case x.values <- m.Values:
		default:
		}
	}
	return true
}

// sendTo sends the packets of a probe, and asks for its values.
func (s *probeServer) sendTo(id string, x *probeSending, lasts time.Duration, answer func(*probeMessage)) {
	began, last := time.Now(), time.Time{}
	sent, bytes := int64(0), int64(0)
	if s.fault == "probe-ends-early" {
		lasts /= 3
	}
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	asked, stop := false, x.stop
	for {
		select {
		case <-stop:
			asked, stop = true, nil
		case f := <-x.values:
			s.mu.Lock()
			if !x.done {
				x.done = true
				final := &contract.Sample{ElapsedNS: time.Since(began).Nanoseconds(), SentBytes: bytes}
				s.out.Sample(id, final)
				s.out.Result(id, probeResult(s.fault, &contract.Result{SizeBytes: bytes, ElapsedNS: final.ElapsedNS, Final: final, Probe: f}))
			}
			s.mu.Unlock()
			answer(&probeMessage{Kind: "bye", ID: id})
			return
		case <-tick.C:
			if s.overOrLeft(id, x) {
				return
			}
		}
		if asked || lasts > 0 && time.Since(began) >= lasts {
			asked = true
			if time.Since(last) >= probeAgain { // few beside the packets, for the link's counts
				last = time.Now()
				answer(&probeMessage{Kind: "end", ID: id, Sent: sent, N: bytes})
			}
			continue
		}
		b := &probeMessage{Kind: "packet", ID: id, N: sent, At: time.Now().UnixNano(), Padding: strings.Repeat("x", 40)}
		sent++
		bytes += int64(len(b.bytes()))
		answer(b)
	}
}

// overOrLeft reports whether a probe is over; that of a client which has left ends so.
func (s *probeServer) overOrLeft(id string, x *probeSending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !x.done && time.Since(x.heard) > time.Second && s.fault != "probe-sends-for-ever" {
		x.done = true
		s.out.Fail(id, harness.Failf(contract.CodeReset, "the client has left"))
	}
	return x.done
}
