package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest/link"
)

// probeChecks are those of drivers that carry probes, in place of the transfers'.
var probeChecks = []check{
	{"probe-alone", "a probe that a time bounds ends with the same values at both ends, and loses nothing on a path that loses nothing", checkProbeAlone, usual, []string{"B1", "B3", "B6", "B7", "B8"}},
	{"probe-ended", "SIGTERM ends a probe's packets, and its result still comes", checkProbeEnded, usual, []string{"B2"}},
	{"probe-concurrent", "several probes at once on one listener, each counts its own packets alone", checkProbeConcurrent, usual, []string{"B5", "R3"}},
	{"probe-port-taken", "a second server on the same port ends with listen-failed", checkProbePortTaken, usual, []string{"P11", "C4"}},
	{"probe-no-server", "without a server the client gives up within its limit", checkProbeNoServer, usual, []string{"L1", "C5", "C6"}},
	{"probe-server-killed", "a server killed in a probe: the client ends with an error within its limit", checkProbeServerKilled, usual, []string{"C8", "L4"}},
	{"probe-client-killed", "a client killed in its probe: the server serves the next", checkProbeClientKilled, usual, []string{"R4"}},
	{"probe-stop-server", "SIGTERM: the server ends at once with exit code 0, a running probe with aborted", checkProbeStopServer, usual, []string{"R8", "C12"}},
	{"probe-lossy-link", "over a slow link that loses, doubles and reorders packets, the values are those of the link", checkProbeLossyLink, apart, []string{"B4", "B8"}},
	{"from-server", "a probe from the server that a time bounds ends with the same values at both ends, and loses nothing on a path that loses nothing", checkFromServer, usual, []string{"B9"}},
	{"from-server-ended", "SIGTERM of the client ends the packets of a probe from the server, and its result still comes", checkFromServerEnded, usual, []string{"B2", "B9"}},
	{"from-server-both", "a probe in each direction at once on one listener, each counts its own packets alone", checkBothWays, usual, []string{"B5", "B9"}},
	{"from-server-client-killed", "a client killed in a probe from the server: the server ends the probe, and serves the next", checkFromServerClientKilled, usual, []string{"B10", "R4"}},
	{"from-server-stop", "SIGTERM: the server ends at once with exit code 0, a probe that it sends with aborted", checkFromServerStop, usual, []string{"B9", "R8"}},
	{"from-server-lossy-link", "over a slow link that loses, doubles and reorders packets, the values of a probe from the server are those of the link", checkFromServerLossyLink, apart, []string{"B4", "B8", "B9"}},
	{"probe-idle-server", "a server without a probe takes no processor time, and wakes up at most 10 times a second", checkProbeIdle, usual, []string{"R13"}},
}

// markChecks are those of every driver with client and server.
var markChecks = []check{
	{"dscp", "with dscp every packet of both ends has this code point", checkDSCP, apart, []string{"P17"}},
}

func (s *suite) isProbe() bool { return s.target.Manifest.Kind == contract.KindProbe }

// probeParams are a client's of a probe that lasts so long; 0: until it is ended.
func (s *suite) probeParams(port int, lasts time.Duration) *contract.Parameters {
	p := s.clientParams(port, 0)
	p.Transfer.DurationMS = lasts.Milliseconds()
	return p
}

// probed waits for a probe that must end well, and holds what both ends say against each other.
func (s *suite) probed(ctx context.Context, srv, c *proc, p *contract.Parameters) (*contract.Result, error) {
	within := s.within(p) + contract.ProbeDrainMS*time.Millisecond
	if err := c.wait(ctx, within); err != nil {
		return nil, err
	}
	if c.code != contract.ExitOK {
		return nil, fmt.Errorf("the client ended with %s%s%s", c.ending(), c.lastError(), c.tail())
	}
	r, err := clientResult(c, p, time.Since(c.began))
	if err != nil {
		return nil, err
	}
	got, err := srv.await(ctx, s.o.Patience, "result for the probe", about(contract.KindResult, p.Transfer.ID))
	if err != nil {
		return nil, err
	}
	switch {
	case r.Probe == nil || got.Result.Probe == nil:
		return nil, errors.New("a result without the values of a probe")
	case !reflect.DeepEqual(r.Probe, got.Result.Probe):
		return nil, fmt.Errorf("the client reports %+v, the server %+v, expected the same values", *r.Probe, *got.Result.Probe)
	}
	sent, received := r.SizeBytes, got.Result.SizeBytes
	if p.Transfer.FromServer {
		sent, received = received, sent
	}
	if sent != r.Probe.SentBytes || received != r.Probe.ReceivedBytes {
		return nil, fmt.Errorf("size_bytes is %d at the sending end and %d at the other, expected %d sent and %d received", sent, received, r.Probe.SentBytes, r.Probe.ReceivedBytes)
	}
	return r, nil
}

// wholeProbe is a probe on a path that loses nothing.
func (s *suite) wholeProbe(ctx context.Context, srv *proc, port int, lasts time.Duration) (*contract.Result, error) {
	return s.whole(ctx, srv, s.probeParams(port, lasts))
}

func (s *suite) whole(ctx context.Context, srv *proc, p *contract.Parameters) (*contract.Result, error) {
	c, err := s.begin(p)
	if err != nil {
		return nil, err
	}
	r, err := s.probed(ctx, srv, c, p)
	if err != nil {
		return nil, err
	}
	return r, lostNothing(r.Probe)
}

func lostNothing(f *contract.ProbeMetrics) error {
	if f.Sent == 0 || f.Received != f.Sent || f.Duplicated != 0 || f.Reordered != 0 {
		return fmt.Errorf("%d sent, %d received, %d duplicated, %d reordered; expected all of some packets, once and in order", f.Sent, f.Received, f.Duplicated, f.Reordered)
	}
	return nil
}

func checkProbeAlone(ctx context.Context, s *suite) (string, error) {
	const lasts = 1500 * time.Millisecond
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	r, err := s.wholeProbe(ctx, srv, sp.Local.Port, lasts)
	if err != nil {
		return "", err
	}
	if took := time.Duration(r.ElapsedNS); took < lasts {
		return "", fmt.Errorf("a probe of %s took %s", lasts, took)
	}
	return oneClock(r)
}

// oneClock holds delays against what both ends of the suite's network have: this
// machine's clock.
func oneClock(r *contract.Result) (string, error) {
	d := r.Probe.Delay
	if d.MinNS < 0 || d.MaxNS > r.ElapsedNS {
		return "", fmt.Errorf("delays from %s to %s on one machine", time.Duration(d.MinNS), time.Duration(d.MaxNS))
	}
	return fmt.Sprintf("%d packets, %s on average", r.Probe.Sent, time.Duration(d.MeanNS).Round(time.Microsecond)), nil
}

func checkProbeEnded(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	p := s.probeParams(sp.Local.Port, 0)
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	if err := s.underWay(ctx, srv, p); err != nil {
		return "", err
	}
	begin := time.Now()
	c.terminate()
	if err := c.wait(ctx, contract.ProbeDrainMS*time.Millisecond+s.o.Patience); err != nil {
		return "", fmt.Errorf("after SIGTERM: %w", err)
	}
	r, err := s.probed(ctx, srv, c, p)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s after SIGTERM", time.Since(begin).Round(time.Millisecond)), lostNothing(r.Probe)
}

// underWay waits until packets of a probe have arrived at an end.
func (s *suite) underWay(ctx context.Context, at *proc, p *contract.Parameters) error {
	_, err := at.await(ctx, s.o.Patience, "sample with packets", func(e *seen) bool {
		return e.Event.Event == contract.KindSample && e.Transfer == p.Transfer.ID && e.Sample.SentBytes > 0
	})
	return err
}

func checkProbeConcurrent(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	const together = 4
	var params []*contract.Parameters
	var clients []*proc
	for range together {
		p := s.probeParams(sp.Local.Port, 0)
		c, err := s.begin(p)
		if err != nil {
			return "", err
		}
		params, clients = append(params, p), append(clients, c)
	}
	// No one ends before packets of all of them have arrived.
	for i := range clients {
		if err := s.underWay(ctx, srv, params[i]); err != nil {
			return "", fmt.Errorf("probe %d of %d at once: %w", i+1, together, err)
		}
	}
	for i, c := range clients {
		c.terminate()
		r, err := s.probed(ctx, srv, c, params[i])
		if err == nil {
			err = lostNothing(r.Probe)
		}
		if err == nil && r.Probe.Strays > 0 {
			err = fmt.Errorf("%d strays: packets of another probe", r.Probe.Strays)
		}
		if err != nil {
			return "", fmt.Errorf("probe %d of %d at once: %w", i+1, together, err)
		}
	}
	return "", nil
}

func checkProbePortTaken(ctx context.Context, s *suite) (string, error) {
	return "", s.portTaken(ctx, func(srv *proc, port int) error {
		_, err := s.wholeProbe(ctx, srv, port, 300*time.Millisecond)
		return err
	})
}

func checkProbeNoServer(ctx context.Context, s *suite) (string, error) {
	p := s.probeParams(s.port(), time.Second)
	p.Limits.ConnectMS = 1000
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	code, err := s.failure(ctx, c, time.Second+s.o.Patience, contract.CodeConnectRefused, contract.CodeConnectTimeout)
	return string(code), err
}

func checkProbeServerKilled(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	p := s.probeParams(sp.Local.Port, time.Second)
	p.Limits.TransferMS = s.lossMS()
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	srv.kill()
	code, err := s.failure(ctx, c, time.Duration(p.Limits.TransferMS)*time.Millisecond+s.o.Patience, lost...)
	return string(code), err
}

func checkProbeClientKilled(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	p := s.probeParams(sp.Local.Port, time.Minute)
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	c.kill()
	_, err = s.wholeProbe(ctx, srv, sp.Local.Port, 300*time.Millisecond)
	return "", err
}

func checkProbeStopServer(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	p := s.probeParams(sp.Local.Port, time.Second)
	p.Limits.TransferMS = s.lossMS()
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	srv.terminate()
	if err := s.stopped(ctx, srv); err != nil {
		return "", err
	}
	if e := srv.find(about(contract.KindError, p.Transfer.ID)); e == nil || e.Code != contract.CodeAborted {
		return "", errors.New("no error event with aborted for the running probe")
	}
	_, err = s.failure(ctx, c, time.Duration(p.Limits.TransferMS)*time.Millisecond+s.o.Patience, lost...)
	return "", err
}

// checkProbeLossyLink counts on what the link itself has counted.
func checkProbeLossyLink(ctx context.Context, s *suite) (string, error) {
	l, err := s.needLink()
	if err != nil {
		return "", err
	}
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	const delay = 100 * time.Millisecond
	l.Both(link.Conditions{BitsPerSecond: 256_000, Delay: delay, Loss: 0.1, Duplicate: 0.2, Reorder: 0.1})
	p := s.probeParams(sp.Local.Port, 5*time.Second)
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	r, err := s.probed(ctx, srv, c, p)
	if err != nil {
		return "", err
	}
	up, _ := l.Traffic()
	return likeTheLink(r.Probe, &up, delay)
}

// likeTheLink holds a probe's values against what the link did in its direction.
func likeTheLink(f *contract.ProbeMetrics, t *link.Traffic, delay time.Duration) (string, error) {
	if err := asTheLink(f, t, delay); err != nil {
		return "", err
	}
	if f.Delay == nil {
		return "", errors.New("no packet arrived")
	}
	return fmt.Sprintf("%d of %d lost, %d duplicated, %d reordered, %s on average", f.Lost, f.Sent, f.Duplicated, f.Reordered, time.Duration(f.Delay.MeanNS).Round(time.Millisecond)), nil
}

// asTheLink holds a probe's values against what the link did with the packets of the
// end that sent it.
func asTheLink(f *contract.ProbeMetrics, up *link.Traffic, delay time.Duration) error {
	// Those that say hello, end and goodbye are in the link's counts, too.
	others := up.Packets - f.Sent
	switch {
	case f.Delay != nil && time.Duration(f.Delay.MinNS) < delay:
		return fmt.Errorf("a delay of %s over a link of %s", time.Duration(f.Delay.MinNS), delay)
	case others < 0:
		return fmt.Errorf("%d packets sent, the link had %d of that end", f.Sent, up.Packets)
	case f.Lost > up.Lost || f.Lost < up.Lost-others:
		return fmt.Errorf("%d packets lost, the link lost %d of which at most %d were others", f.Lost, up.Lost, others)
	case f.Received+f.Duplicated > up.Packets-up.Lost+up.Doubled:
		return fmt.Errorf("%d packets received and duplicated, the link delivered %d and %d of them twice", f.Received+f.Duplicated, up.Packets-up.Lost, up.Doubled)
	}
	return nil
}

func checkProbeIdle(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	if _, err := s.wholeProbe(ctx, srv, sp.Local.Port, 300*time.Millisecond); err != nil {
		return "", err
	}
	return s.becomesIdle(ctx, srv, "server", "probe")
}

// checkDSCP looks at every packet of a transfer, or of a probe.
func checkDSCP(ctx context.Context, s *suite) (string, error) {
	if !s.target.Manifest.Has(contract.FeatureDSCP) {
		return "", skip("the manifest does not declare the feature %s", contract.FeatureDSCP)
	}
	l, err := s.needLink()
	if err != nil {
		return "", err
	}
	const codePoint = 46 // EF, RFC 3246
	sp := s.serverParams()
	sp.DSCP = codePoint
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	l.Begin(1)
	p := s.clientParams(sp.Local.Port, drawSize(64*kib))
	if s.isProbe() {
		p = s.probeParams(sp.Local.Port, time.Second)
	}
	p.DSCP = codePoint
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	if s.isProbe() {
		_, err = s.probed(ctx, srv, c, p)
	} else {
		_, err = s.wellDone(ctx, srv, c, p)
	}
	if err != nil {
		return "", err
	}
	up, down := l.Traffic()
	for who, t := range map[string]link.Traffic{"client": up, "server": down} {
		for d, n := range t.DSCP {
			if d != codePoint {
				return "", fmt.Errorf("the %s sent %d of %d packets with DSCP %d, expected %d in all", who, n, t.Packets, d, codePoint)
			}
		}
	}
	return fmt.Sprintf("%d packets of the client, %d of the server", up.Packets, down.Packets), nil
}

// of reports whether a driver with this manifest has the check.
func (c *check) of(m *contract.Manifest) bool {
	among := func(table []check) bool {
		return slices.ContainsFunc(table, func(x check) bool { return x.name == c.name })
	}
	if among(markChecks) {
		return m.Plays(contract.RoleClient)
	}
	switch probe := m.Kind == contract.KindProbe; {
	case among(probeChecks):
		return probe
	case among(transferChecks):
		return !probe && m.Plays(contract.RoleClient)
	case among(relayChecks):
		return m.Plays(contract.RoleRelay)
	}
	return true
}
