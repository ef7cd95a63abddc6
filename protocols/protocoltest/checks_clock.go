package protocoltest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest/link"
)

// The payload of transfers that the link holds, and how much of it is held
// back: that passes within milliseconds once the link is released,
// and fits into any receive buffer. A payload that a time bounds cannot end
// before, so there the link holds early: a protocol may begin slowly.
const (
	heldSize      = 256 * kib
	heldBack      = 32 * kib
	heldAfterOpen = 32 * kib
	heldMS        = 2000 // bound of such a transfer, shorter than the hold
)

// Tolerance of a driver's clock against the suite's: it may be one that is
// slewed (adjtimex(2): 500 ppm at most).
func tolerance(d time.Duration) time.Duration { return time.Millisecond + d/1000 }

// bounds are a time that a driver measures as the suite's own clock has it. They
// hold however busy the machine is: a moment before and one after it began, and
// ended. A busy machine makes them wide and no sound driver wrong.
type bounds struct {
	begun, ended [2]time.Time // not before, not after
}

func (b bounds) least() time.Duration { return b.ended[0].Sub(b.begun[1]) }
func (b bounds) most() time.Duration  { return b.ended[1].Sub(b.begun[0]) }

// held is a transfer that the link held for a while.
type held struct {
	p              *contract.Parameters
	srv, c         *proc
	client, server *contract.Result
	// The measured time of either end, as the suite saw it.
	atClient, atServer bounds
	// pause is when both processes were stopped; zero where they were not.
	pause [2]time.Time
	// released is until when the link held the end of the payload back.
	released time.Time
	// atHalf is what the link had seen of the client in the middle of the hold.
	atHalf link.Traffic
	half   time.Time // just after
	// sent is what the link had seen of the client in the end.
	sent link.Traffic
}

// hold says how a transfer is held.
type hold struct {
	lasts      time.Duration // until the link is released, from the start of the transfer
	size       int64         // about that of the payload; 0: heldSize
	open       bool          // a time bounds the transfer
	intervalMS int           // of the samples
	clientMS   int           // the same, of the client alone; 0: intervalMS
	loseEach   int
	// paused is how long both processes are stopped within the hold.
	paused time.Duration
	// deaf is how long the server is stopped while the last of the payload arrives.
	deaf time.Duration
}

// hold runs a transfer that goes well, over a link that holds it, and has judge
// look at it.
func (s *suite) hold(ctx context.Context, h hold, judge func(*held) error) error {
	return s.onLink(func(l *link.Link) error {
		t, err := s.transferOver(ctx, l, h)
		if err != nil {
			return err
		}
		return judge(t)
	})
}

func (s *suite) transferOver(ctx context.Context, l *link.Link, h hold) (*held, error) {
	sp := s.serverParams()
	sp.SampleIntervalMS = h.intervalMS
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return nil, err
	}
	t := &held{srv: srv, p: s.clientParams(sp.Local.Port, drawSize(cmp.Or(h.size, heldSize)))}
	t.p.SampleIntervalMS = cmp.Or(h.clientMS, h.intervalMS)
	after := t.p.Transfer.SizeBytes - heldBack
	if h.open {
		t.p.Transfer.DurationMS, t.p.Transfer.SizeBytes, after = heldMS, endless, heldAfterOpen
	}
	l.Begin(flowingBytes)
	l.Up.Change(link.Conditions{Hold: link.HoldAfter(after), Lose: loseOneOf(h.loseEach)})
	if t.c, err = s.begin(t.p); err != nil {
		return nil, err
	}
	ok, err := awaitHeld(ctx, l, t.c, connectMS*time.Millisecond+s.o.Patience, fmt.Sprintf("%d bytes of the payload were not sent", after))
	if err != nil {
		return nil, err
	}
	if ok {
		if err := s.duringHold(ctx, l, h, t); err != nil {
			return nil, err
		}
	}
	if t.client, err = s.wellDone(ctx, srv, t.c, t.p); err != nil {
		return nil, err
	}
	// More than the link had passed on proves that it held a part of the payload.
	if !ok || t.client.SizeBytes <= after {
		return nil, fmt.Errorf("a transfer of %d bytes was over before %d bytes had left the client", t.client.SizeBytes, after)
	}
	server := srv.find(about(contract.KindResult, t.p.Transfer.ID))
	t.server = server.Result
	up, down := l.Traffic()
	t.sent = up
	t.bound(up, down, server)
	return t, nil
}

// duringHold lets the time pass that the link holds the transfer, and releases it.
func (s *suite) duringHold(ctx context.Context, l *link.Link, h hold, t *held) error {
	// One half on either side of the pause.
	part := max(h.lasts-h.paused-time.Since(l.Up.Traffic().Marked), h.lasts/4) / 2
	if err := wait(ctx, part); err != nil {
		return err
	}
	t.atHalf, t.half = l.Up.Traffic(), time.Now()
	if h.paused > 0 {
		for _, p := range []*proc{t.c, t.srv} {
			at, err := s.pause(ctx, p)
			if err != nil {
				return err
			}
			t.pause[0] = at
		}
		if err := wait(ctx, h.paused); err != nil {
			return err
		}
		t.pause[1] = t.c.resume()
		t.srv.resume()
	}
	if err := wait(ctx, part); err != nil {
		return err
	}
	if h.deaf > 0 {
		if _, err := s.pause(ctx, t.srv); err != nil {
			return err
		}
	}
	t.released = l.Up.Release()
	if h.deaf > 0 {
		if err := wait(ctx, h.deaf); err != nil {
			return err
		}
		t.released = t.srv.resume()
	}
	return nil
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bound finds what the moments on the link and those of the event lines say of
// the two measured times.
func (t *held) bound(up, down link.Traffic, server *seen) {
	id := t.p.Transfer.ID
	sampled := func(p *proc, or time.Time) time.Time {
		if e := p.find(about(contract.KindSample, id)); e != nil {
			return e.at
		}
		return or
	}
	// The client's clock starts after the server's first byte came, which the
	// link had then handed on, and before the payload is sent. A clock that a
	// sample shows has started.
	begun := up.Marked
	if at := sampled(t.c, begun); at.Before(begun) {
		begun = at
	}
	t.atClient = bounds{
		begun: [2]time.Time{down.First, begun},
		ended: [2]time.Time{t.released, t.c.find(about(contract.KindResult, id)).at},
	}
	// The server's starts with the header, which answers the server's first
	// byte, and ends with the last byte.
	t.atServer = bounds{
		begun: [2]time.Time{up.Answered, sampled(t.srv, server.at)},
		ended: [2]time.Time{t.released, server.at},
	}
}

// holds compares the results of both ends with the suite's clock. What says
// until when the transfer cannot have ended.
func (t *held) holds(what string) error {
	for _, x := range []struct {
		who   string
		r     *contract.Result
		b     bounds
		until string
		from  string
	}{
		{"client", t.client, t.atClient, fmt.Sprintf("from the moment at which %d bytes had left the client", flowingBytes), "from the server's first packet"},
		{"server", t.server, t.atServer, "from the server's first sample", "from the client's first packet after one of the server"},
	} {
		for _, f := range []struct {
			name string
			ns   int64
		}{{"elapsed_ns", x.r.ElapsedNS}, {"elapsed_ns of the final sample", x.r.Final.ElapsedNS}} {
			elapsed := time.Duration(f.ns)
			if least := x.b.least(); elapsed+tolerance(least) < least {
				return fmt.Errorf("%s: %s is %s, and the transfer took %s at least on the suite's clock (%s to the one %s)",
					x.who, f.name, ms(elapsed), ms(least), x.until, what)
			}
			if most := x.b.most(); elapsed > most+tolerance(most) {
				return fmt.Errorf("%s: %s is %s, and the transfer took %s at most on the suite's clock (%s to the result's line)",
					x.who, f.name, ms(elapsed), ms(most), x.from)
			}
		}
	}
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

// staleLine is how much older than its line a sample may be: more than any
// machine delays every line of a second.
const staleLine = 500 * time.Millisecond

// samples compares the times of all samples with the suite's clock.
func (t *held) samples() error {
	for _, x := range []struct {
		p *proc
		b bounds
	}{{t.c, t.atClient}, {t.srv, t.atServer}} {
		late, fresh := time.Duration(0), false
		for _, e := range x.p.all(about(contract.KindSample, t.p.Transfer.ID)) {
			elapsed := time.Duration(e.Sample.ElapsedNS)
			if most := e.at.Sub(x.b.begun[0]); elapsed > most+tolerance(most) {
				return fmt.Errorf("%s: a sample of %s was written %s at most after the transfer's clock had started", x.p.name, ms(elapsed), ms(most))
			}
			if t.pause[0].IsZero() {
				continue
			}
			// Both processes were stopped; none can have taken a sample then.
			from, to := t.pause[0].Sub(x.b.begun[0]), t.pause[1].Sub(x.b.begun[1])
			if elapsed > from+tolerance(from) && elapsed+tolerance(to) < to {
				return fmt.Errorf("%s: a sample says that it was taken at %s, and from %s to %s on the suite's clock the driver was stopped (SIGSTOP)",
					x.p.name, ms(elapsed), ms(from), ms(to))
			}
			if e.at.After(t.pause[1]) && e.at.Before(t.released) {
				late = e.at.Sub(x.b.begun[1]) - elapsed
				fresh = fresh || late < staleLine
			}
		}
		if late >= staleLine && !fresh {
			return fmt.Errorf("%s: every sample line of the last %s before the payload's end came %s or more after the time that it says; expected each line to be written at once",
				x.p.name, ms(t.released.Sub(t.pause[1])), ms(staleLine))
		}
	}
	return nil
}

// sharp reports whether the bounds are close enough together: an error of 5 %,
// and one of 50 ms at the server, shows. A protocol that takes its time to connect
// makes them wider, every time.
func (t *held) sharp() bool {
	connect := time.Duration(t.client.ConnectNS)
	return t.atClient.most()-t.atClient.least() <= connect+t.atClient.least()/25 && t.atServer.most()-t.atServer.least() <= connect+40*time.Millisecond
}

// measured runs a transfer, several times at most where the suite knows its time
// not well enough: on a busy machine the bounds may stay wide.
func (s *suite) measured(ctx context.Context, h hold, tries int, what string) (detail string, err error) {
	sharp := false
	for try := 1; try <= tries && !sharp; try++ {
		err := s.hold(ctx, h, func(t *held) error {
			if err := t.holds(what); err != nil {
				return err
			}
			sharp = t.sharp()
			detail = fmt.Sprintf("client %s of %s to %s, server %s of %s to %s",
				ms(time.Duration(t.client.ElapsedNS)), ms(t.atClient.least()), ms(t.atClient.most()),
				ms(time.Duration(t.server.ElapsedNS)), ms(t.atServer.least()), ms(t.atServer.most()))
			return t.samples()
		})
		if err != nil {
			return "", err
		}
	}
	return detail, nil
}

// How long the clocks are measured: 5 % of it are far more than the bounds are apart.
const (
	clockHold  = 2400 * time.Millisecond
	clockPause = 600 * time.Millisecond
	clockMS    = 10 // interval of the samples
)

const untilReleased = "until which the link held the end of the payload back"

func checkClock(ctx context.Context, s *suite) (string, error) {
	return s.measured(ctx, hold{lasts: clockHold, paused: clockPause, intervalMS: clockMS}, 2, untilReleased)
}

func checkClockDuration(ctx context.Context, s *suite) (string, error) {
	if err := s.needDuration(); err != nil {
		return "", err
	}
	// The client's clock is read seldom before the end: a result must not have its
	// time from the last sample.
	return s.measured(ctx, hold{lasts: clockHold, paused: clockPause, intervalMS: clockMS, clientMS: 350, open: true}, 1, untilReleased)
}

// How long the server is stopped when the last of the payload comes, and the
// hold before.
const (
	answerHold = 100 * time.Millisecond
	answerDeaf = 800 * time.Millisecond
)

func checkClockEnd(ctx context.Context, s *suite) (string, error) {
	return s.measured(ctx, hold{lasts: answerHold, deaf: answerDeaf, intervalMS: clockMS}, 1,
		"until which the server's process was stopped and could not answer; whatever the protocols had acknowledged, the clock runs until '.' has arrived")
}

// connectHold is how long the link holds the client's first packet.
const connectHold = 400 * time.Millisecond

// checkConnectTime holds a client's first packet back: until it is released there
// is no connection, and neither end's clock runs.
func checkConnectTime(ctx context.Context, s *suite) (detail string, err error) {
	err = s.onLink(func(l *link.Link) error {
		detail, err = s.heldConnect(ctx, l)
		return err
	})
	return detail, err
}

func (s *suite) heldConnect(ctx context.Context, l *link.Link) (string, error) {
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	p := s.clientParams(sp.Local.Port, little())
	l.Begin(flowingBytes)
	l.Up.Change(link.Conditions{Hold: link.HoldAfter(-1)}) // the first packet too
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	if _, err := awaitHeld(ctx, l, c, s.o.waits.ready, "no packet was sent"); err != nil {
		return "", err
	}
	if err := wait(ctx, connectHold); err != nil {
		return "", err
	}
	released := l.Up.Release()
	r, err := s.wellDone(ctx, srv, c, p)
	if err != nil {
		return "", err
	}
	connect := time.Duration(r.ConnectNS)
	least := released.Sub(l.Up.Traffic().Came)
	most := c.find(about(contract.KindConnected, p.Transfer.ID)).at.Sub(c.began)
	if connect+tolerance(least) < least || connect > most+tolerance(most) {
		return "", fmt.Errorf("client: connect_ns is %s, expected %s to %s: the link held the client's first packet back for the former, and the latter is from the start of the process to the connected event",
			ms(connect), ms(least), ms(most))
	}
	for _, d := range []*proc{c, srv} {
		e := d.find(about(contract.KindResult, p.Transfer.ID))
		elapsed, most := time.Duration(e.Result.ElapsedNS), e.at.Sub(released)
		if elapsed > most+tolerance(most) {
			return "", fmt.Errorf("%s: elapsed_ns is %s, and its clock ran for %s at most: before, the link held the client's first packet back, and there was no connection",
				d.name, ms(elapsed), ms(most))
		}
	}
	return fmt.Sprintf("%s of %s to %s", ms(connect), ms(least), ms(most)), nil
}
