package protocoltest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest/link"
)

// lossy is a bad radio link: 256 kbit/s, 100 ms each way, 5 % of the packets
// lost in either direction.
var lossy = link.Conditions{BitsPerSecond: 256_000, Delay: 100 * time.Millisecond, Loss: 0.05, Duplicate: 0.01, Reorder: 0.02}

func checkLossyLink(ctx context.Context, s *suite) (string, error) {
	l, err := s.needLink()
	if err != nil {
		return "", err
	}
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	l.Both(lossy)
	p := s.clientParams(sp.Local.Port, drawSize(64*kib))
	p.Limits.ConnectMS, p.Limits.TransferMS = 30_000, 60_000
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	r, err := s.wellDone(ctx, srv, c, p)
	if err != nil {
		return "", fmt.Errorf("%d bytes over a link of 256 kbit/s and 200 ms, where 5 %% of the packets are lost, 2 %% overtaken and 1 %% doubled, must arrive: %w", p.Transfer.SizeBytes, err)
	}
	least := time.Duration(float64(p.Transfer.SizeBytes) * 8 / float64(lossy.BitsPerSecond) * 1e9)
	if took := time.Duration(r.ElapsedNS); took < least {
		return "", fmt.Errorf("the client reports %s for %d bytes over a link that needs %s for them", took, p.Transfer.SizeBytes, least)
	}
	return rate(r), nil
}

// longOutage is longer than the idle timers that libraries come with, the full
// one longer than UDT's.
func (s *suite) longOutage() time.Duration {
	if s.o.Quick {
		return 12 * time.Second
	}
	return 75 * time.Second
}

func checkLongOutage(ctx context.Context, s *suite) (string, error) {
	l, err := s.needLink()
	if err != nil {
		return "", err
	}
	outage := s.longOutage()
	sp := s.serverParams()
	sp.Limits.TransferMS = 10 * outage.Milliseconds()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	for size := drawSize(2 * mib); ; size *= 4 {
		l.Both(brisk)
		p := s.clientParams(sp.Local.Port, size)
		p.Limits.TransferMS = sp.Limits.TransferMS
		c, err := s.begin(p)
		if err != nil {
			return "", err
		}
		if _, err := srv.await(ctx, s.within(p), "connected event", about(contract.KindConnected, p.Transfer.ID)); err != nil {
			return "", err
		}
		l.Both(link.Conditions{Cut: true})
		cut := time.Now()
		if err := s.outlive(ctx, outage, c, srv, p); err != nil {
			return "", fmt.Errorf("the link was cut for %s in a transfer, limits.transfer_ms is %d: %w", outage, p.Limits.TransferMS, err)
		}
		if c.find(kind(contract.KindResult)) != nil && size < 1<<34 {
			continue // done before the cut
		}
		l.Both(brisk)
		r, err := s.wellDone(ctx, srv, c, p)
		if err != nil {
			return "", fmt.Errorf("after an outage of %s, limits.transfer_ms is %d: %w", outage, p.Limits.TransferMS, err)
		}
		return fmt.Sprintf("cut for %s, done %s after the cut", outage, (time.Duration(r.ElapsedNS) - cut.Sub(c.began)).Round(100*time.Millisecond)), nil
	}
}

// outlive waits for the end of an outage, or for the transfer's end in it. An
// end other than a result is an error: of both ends, the limit has not passed.
func (s *suite) outlive(ctx context.Context, outage time.Duration, c, srv *proc, p *contract.Parameters) error {
	begin := time.Now()
	for time.Since(begin) < outage {
		for _, d := range []*proc{c, srv} {
			if e := d.find(about(contract.KindError, p.Transfer.ID)); e != nil {
				return fmt.Errorf("the %s gave up %s after the cut with %s (%s); no timer of the protocol's own may end a transfer before its limit", d.name, e.at.Sub(begin).Round(100*time.Millisecond), e.Code, e.Message)
			}
		}
		if c.find(kind(contract.KindResult)) != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(0, min(outage-time.Since(begin), 50*time.Millisecond))):
		}
	}
	return nil
}

// answerTries is how often checkAnswerKept tries to be in time.
const answerTries = 4

// checkAnswerKept loses everything that the server sends for a second after its
// last event: the client must get the answer, good or bad, from a server that is
// still there.
func checkAnswerKept(ctx context.Context, s *suite) (string, error) {
	l, err := s.needLink()
	if err != nil {
		return "", err
	}
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	idle, err := s.idleSockets(ctx, srv, sp.Local.Port)
	if err != nil {
		return "", err
	}
	delay := 300 * time.Millisecond
	for range answerTries {
		l.Up.Change(link.Conditions{Delay: delay})
		// Of any protocol, sent in full before an acknowledgement arrives.
		p := s.clientParams(sp.Local.Port, little())
		if kept, err := s.answerKept(ctx, l, srv, p, idle); err != nil || kept {
			return "", err
		}
		delay *= 2 // the answer had arrived before the cut
	}
	return "", skip("the answer could not be lost, not with a delay of %s either", delay/2)
}

// idleSockets is how many sockets a server has without a transfer, once it has
// had one: what it opens then for good is none of the connection's.
func (s *suite) idleSockets(ctx context.Context, srv *proc, port int) (int, error) {
	fresh := sockets(srv)
	if _, err := s.transfer(ctx, srv, port, little()); err != nil {
		return 0, err
	}
	return s.settled(ctx, srv, fresh)
}

// answerKept is one transfer whose answer is lost; false: it came too early for that.
func (s *suite) answerKept(ctx context.Context, l *link.Link, srv *proc, p *contract.Parameters, idle int) (bool, error) {
	c, err := s.begin(p)
	if err != nil {
		return false, err
	}
	if _, err := c.await(ctx, s.within(p), "connected event", kind(contract.KindConnected)); err != nil {
		return false, err
	}
	// The header and the payload are on their way.
	l.Down.Change(link.Conditions{Cut: true})
	cut := time.Since(c.began)
	open := sockets(srv)
	if _, err := srv.await(ctx, s.within(p), "result for the transfer", about(contract.KindResult, p.Transfer.ID)); err != nil {
		return false, fmt.Errorf("while nothing that the server sends arrives: %w", err)
	}
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	left := sockets(srv)
	early := c.find(func(e *seen) bool { return e.Event.Event == contract.KindResult }) != nil
	l.Both(link.Conditions{})
	const lost = "the server's answer was lost for a second; its end stays open until the client has closed, so that the answer is sent again: %w"
	r, err := s.wellDone(ctx, srv, c, p)
	if err != nil {
		return false, fmt.Errorf(lost, err)
	}
	// By the client's clock the answer came before the cut, and the server was free to close.
	if early || time.Duration(r.ConnectNS+r.ElapsedNS) <= cut {
		return false, nil
	}
	// A protocol whose connections share a socket, or have none, shows nothing here.
	if open > idle && left <= idle {
		return false, fmt.Errorf("the server had closed the connection (%d sockets open, %d in the transfer) before the client had its answer; its end stays open until the client has closed", left, open)
	}
	if left, err = s.settled(ctx, srv, idle); err != nil {
		return false, err
	}
	if left > idle {
		return false, fmt.Errorf("the server has %d sockets open %s after its client has closed, and had %d before", left, s.o.waits.limit, idle)
	}
	return true, nil
}

// settled waits until the server has no more sockets than it had when idle.
func (s *suite) settled(ctx context.Context, srv *proc, idle int) (int, error) {
	for begin := time.Now(); ; {
		left := sockets(srv)
		if left <= idle || time.Since(begin) > s.o.waits.limit {
			return left, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return left, ctx.Err()
		}
	}
}

// sockets counts those that a server's process group has open.
func sockets(srv *proc) int {
	n := 0
	for _, pid := range members(srv.process.PID) {
		dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
		fds, _ := os.ReadDir(dir)
		for _, fd := range fds {
			if to, err := os.Readlink(dir + fd.Name()); err == nil && strings.HasPrefix(to, "socket:") {
				n++
			}
		}
	}
	return n
}

// members are the processes of a group (proc(5), stat: pgrp is field 5).
func members(group int) []int {
	dir, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range dir {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The command name, in brackets, may hold spaces and brackets.
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) > 2 && f[2] == strconv.Itoa(group) {
			out = append(out, pid)
		}
	}
	return out
}

// slow is a link on which a send buffer lasts for seconds.
var slow = link.Conditions{BitsPerSecond: 128_000, Backlog: 8 << 10, Delay: 20 * time.Millisecond}

const (
	// brokenOffBytes may come from a transfer that was broken off: its reset, and
	// the answers to what the other end had under way.
	brokenOffBytes  = 8 << 10
	brokenOffWindow = 1500 * time.Millisecond
)

// checkBrokenOff counts what comes from a client that has ended in its transfer.
func checkBrokenOff(ctx context.Context, s *suite) (string, error) {
	l, err := s.needLink()
	if err != nil {
		return "", err
	}
	l.Both(slow)
	sp := s.serverParams()
	var detail []string
	for _, end := range []struct {
		how   string
		limit int64
		do    func(*proc)
	}{
		{"SIGTERM", transferMS, (*proc).terminate},
		{"its limits.transfer_ms", 1000, func(*proc) {}},
		{"SIGKILL", transferMS, (*proc).kill},
	} {
		sp.Local.Port = s.port()
		p := s.clientParams(sp.Local.Port, endless)
		p.Limits.TransferMS = end.limit
		_, c, err := s.running(ctx, sp, p)
		if err != nil {
			return "", err
		}
		// So that it has a send buffer to send; sooner only makes the check weaker.
		time.Sleep(time.Second)
		end.do(c)
		if err := c.wait(ctx, s.within(p)); err != nil {
			return "", err
		}
		if err := l.Up.Drain(ctx); err != nil {
			return "", err
		}
		before := l.Up.Traffic()
		select {
		case <-time.After(brokenOffWindow):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		after := l.Up.Traffic()
		sent := after.Bytes - before.Bytes
		if sent > brokenOffBytes {
			return "", fmt.Errorf("%d bytes in %d packets came from the client in the %s after its process had ended by %s; a transfer that failed is reset, and its send buffer is not sent (at most %d bytes are expected)", sent, after.Packets-before.Packets, brokenOffWindow, end.how, brokenOffBytes)
		}
		detail = append(detail, fmt.Sprintf("%d bytes after %s", sent, end.how))
	}
	return strings.Join(detail, ", "), nil
}

// checkServerBreaksOff: a server whose limit passes tells the client, which
// would go on sending until its own.
func checkServerBreaksOff(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	sp.Limits.TransferMS = 1000
	p := s.clientParams(sp.Local.Port, endless)
	if s.net.link != nil {
		s.net.link.Both(brisk)
	}
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	limit := time.Duration(sp.Limits.TransferMS) * time.Millisecond
	e, err := srv.await(ctx, limit+s.o.waits.limit, "error event for a transfer that does not end", about(contract.KindError, p.Transfer.ID))
	if err != nil {
		return "", fmt.Errorf("the server's limits.transfer_ms is %d: %w", sp.Limits.TransferMS, err)
	}
	if e.Code != contract.CodeTransferTimeout {
		return "", fmt.Errorf("the server said %s (%s), expected transfer-timeout after limits.transfer_ms (%d)", e.Code, e.Message, sp.Limits.TransferMS)
	}
	if after := e.at.Sub(c.began); after < limit {
		return "", fmt.Errorf("the server said transfer-timeout %s after the client had started, its limits.transfer_ms is %d", after.Round(time.Millisecond), sp.Limits.TransferMS)
	}
	if _, err := s.failure(ctx, c, s.o.waits.limit, contract.CodeReset); err != nil {
		return "", fmt.Errorf("the server has given the transfer up and resets it; limits.transfer_ms of the client is %d: %w", p.Limits.TransferMS, err)
	}
	return fmt.Sprintf("its client ended %s later", time.Since(e.at).Round(time.Millisecond)), nil
}
