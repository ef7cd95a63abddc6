package tun

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"linktrial/emulator/ideal"
	"linktrial/emulator/link"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// maxRequestBytes bounds a line from a client: a network whose links all follow
// traces of the most steps takes a few MB.
const maxRequestBytes = 16 << 20

// control serves the control socket. Requests of all clients are handled one
// at a time.
type control struct {
	e       *Emulator
	path    string
	nodes   []node
	labKey  ed25519.PrivateKey // empty: no lab
	log     *slog.Logger
	socket  net.Listener
	clients sync.WaitGroup

	mu     sync.Mutex // one request at a time; guards trial, used and busy
	trial  *trial
	used   usedPorts // by the trials so far
	busy   time.Time // when a packet was last seen in a radio
	connMu sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

// trial is what Begin started.
type trial struct {
	name    string
	seed    uint64
	network *radio.Network
	capture *capture
	traffic *traffic // nil: it is not counted
	bounds  *forecast
}

func listen(cfg Config, e *Emulator) (*control, error) {
	nodes, err := cfg.check()
	if err != nil {
		return nil, err
	}
	// The socket file of a process that has ended refuses connections.
	if c, err := net.Dial("unix", cfg.ControlSocket); err == nil {
		c.Close()
		return nil, fmt.Errorf("control socket %s: another emulator listens there", cfg.ControlSocket)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		if err := os.Remove(cfg.ControlSocket); err != nil {
			return nil, fmt.Errorf("control socket: %w", err)
		}
	}
	s, err := net.Listen("unix", cfg.ControlSocket)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := e.loop.watch(s.(*net.UnixListener)); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), s.Close())
	}
	nodes = append(nodes, cfg.secondNodes(nodes)...)
	return &control{e: e, path: cfg.ControlSocket, nodes: nodes, labKey: cfg.LabKey, log: cfg.Logger, socket: s, conns: map[net.Conn]bool{}, used: usedPorts{first: map[usedPort]int{}}}, nil
}

// serve accepts clients until close.
func (c *control) serve() {
	c.clients.Go(func() {
		for {
			conn, err := c.socket.Accept()
			if err != nil {
				return // closed; nothing else ends a listening Unix socket
			}
			if !c.remember(conn) {
				conn.Close()
				return
			}
			c.clients.Go(func() {
				defer c.forget(conn)
				if err := c.talk(conn); err != nil && !errors.Is(err, net.ErrClosed) {
					c.log.Warn("control connection ended", "error", err)
				}
			})
		}
	})
}

func (c *control) remember(conn net.Conn) bool {
	c.connMu.Lock()
	defer c.connMu.Unlock()
	if !c.closed {
		c.conns[conn] = true
	}
	return !c.closed
}

func (c *control) forget(conn net.Conn) {
	c.connMu.Lock()
	defer c.connMu.Unlock()
	delete(c.conns, conn)
	conn.Close()
}

// close ends all clients and waits for them. A trial under way is abandoned.
func (c *control) close() {
	c.connMu.Lock()
	if c.closed {
		c.connMu.Unlock()
		return
	}
	c.closed = true
	c.socket.Close() // removes the file
	for conn := range c.conns {
		conn.Close()
	}
	c.connMu.Unlock()
	c.clients.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandon()
}

// talk answers one client's requests until it closes the connection.
func (c *control) talk(conn net.Conn) error {
	if err := c.e.loop.watch(conn.(*net.UnixConn)); err != nil {
		return err
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 0, 4096), maxRequestBytes)
	enc := json.NewEncoder(conn)
	for lines.Scan() {
		var rep radiocontrol.Reply
		done := c.e.loop.request()
		req, err := parseRequest(lines.Bytes())
		if err == nil {
			err = c.handle(req, &rep)
		}
		if err != nil {
			rep.Error = err.Error()
		}
		err = enc.Encode(&rep)
		done()
		if err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
	return lines.Err()
}

// parseRequest reads one line; exactly one field must be set.
func parseRequest(line []byte) (*radiocontrol.Request, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	var req radiocontrol.Request
	if err := dec.Decode(&req); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("request: more than one JSON document on the line")
	}
	n := 0
	for _, set := range []bool{req.Configure != nil, req.Begin != nil, req.End != nil, req.Status != nil, req.Quiet != nil, req.Vouch != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return nil, fmt.Errorf("request: %d of configure, begin, end, status, quiet, vouch are set, expected exactly one", n)
	}
	return &req, nil
}

var errEnded = errors.New("the emulator is ending")

func (c *control) handle(req *radiocontrol.Request, rep *radiocontrol.Reply) (err error) {
	if req.Vouch != nil { // what it needs never changes: it does not wait for a trial's end
		rep.Proof, err = c.vouch(req.Vouch)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case req.Configure != nil:
		return c.configure(req.Configure)
	case req.Begin != nil:
		return c.begin(req.Begin)
	case req.End != nil:
		rep.Report, err = c.end(req.End)
	case req.Quiet != nil:
		rep.Quiet, err = c.quiet(*req.Quiet)
	default:
		rep.Status, err = c.status()
	}
	return err
}

func (c *control) configure(n *radio.Network) error {
	first, second := ofRadio(c.nodes, false), ofRadio(c.nodes, true)
	if err := errors.Join(fits(n, first), fitsSecond(n, second)); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	l := c.e.loop
	m, err := l.prepare(n, c.nodes, 0)
	if err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	c.abandon()
	for _, d := range c.e.devices {
		if want := mtuOf(n, d.node.second); want != 0 {
			if err := d.setMTU(want); err != nil {
				return fmt.Errorf("configure: MTU of node %s: %w", d.node.role, err)
			}
		}
	}
	if !l.do(func(l *loop) { l.install(m) }) {
		return errEnded
	}
	c.busy = time.Now()
	c.log.Info("network configured", "medium", string(n.Medium), "mtu_bytes", n.MTUBytes)
	return nil
}

// ofRadio are the nodes as their first or their second radio has them.
func ofRadio(nodes []node, second bool) []node {
	var out []node
	for _, n := range nodes {
		if n.second == second {
			out = append(out, n)
		}
	}
	return out
}

// mtuOf is the MTU of a network or of its second radios, in bytes; 0: it has none.
func mtuOf(n *radio.Network, second bool) int {
	if second {
		n = n.Second
	}
	if n == nil {
		return 0
	}
	return n.MTUBytes
}

func (c *control) begin(b *radiocontrol.Begin) error {
	l := c.e.loop
	n := l.network
	for i, f := range b.Flows {
		if f.SizeBytes < 0 {
			return fmt.Errorf("begin: flow %d has %d bytes", i, f.SizeBytes)
		}
		if f.From == f.To || n.Route(f.From, f.To) == nil {
			return fmt.Errorf("begin: flow %d: no way from %q to %q in this network", i, f.From, f.To)
		}
	}
	if b.Capture != "" && !filepath.IsAbs(b.Capture) {
		return fmt.Errorf("begin: packet log %q, expected an absolute path", b.Capture)
	}
	m, err := l.prepare(n, c.nodes, b.Seed)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if c.trial != nil {
		c.log.Warn("trial was not ended before the next", "trial", c.trial.name)
	}
	c.abandon()
	t := &trial{name: b.Trial, seed: b.Seed, network: n}
	if b.Capture != "" {
		if t.capture, err = newCapture(b.Capture, b.Trial, m.hops(), n); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	if b.Listeners.Last > 0 {
		c.used.trial++
		t.traffic = newTraffic(b, len(c.e.devices), m.radios, &c.used, l.now)
	}
	t.bounds = foresee(n, b.Seed, b.Flows)
	c.trial = t
	if !l.do(func(l *loop) {
		l.install(m)
		if l.stoppable {
			l.pulse.start(time.Since(l.start))
		}
		l.overdue.start(b.TolerateLate)
		if t.capture != nil {
			t.capture.begin(time.Now())
		}
		l.observe(t.traffic, t.capture)
	}) {
		return errEnded
	}
	return nil
}

func (c *control) end(e *radiocontrol.End) (*radiocontrol.Report, error) {
	t := c.trial
	if t == nil {
		return nil, fmt.Errorf("end: no trial runs, asked to end %q", e.Trial)
	}
	if t.name != e.Trial {
		return nil, fmt.Errorf("end: trial %q runs, asked to end %q", t.name, e.Trial)
	}
	if !c.settle() {
		return nil, errEnded
	}
	r := &radiocontrol.Report{}
	var overrun, writeErrors int64
	if !c.e.loop.do(func(l *loop) {
		l.release()
		l.observe(nil, nil)
		r.Duration, r.Hops, r.Stalled, r.Late = l.now(), hopsOf(l.radios), l.pulse.stop(), l.overdue.report()
		for i := range l.radios {
			r.BusyShare = max(r.BusyShare, l.radios[i].net.BusyShare())
		}
		overrun, writeErrors = l.overrun, l.writeErrors
		l.overrun, l.writeErrors = 0, 0
	}) {
		return nil, errEnded
	}
	c.trial = nil
	if t.traffic != nil {
		r.Traffic = t.traffic.report(c.e.devices)
	}
	if r.Stalled > 0 {
		c.log.Warn("the emulator did not run for some time during a trial", "trial", t.name, "for", r.Stalled)
	}
	if overrun+writeErrors > 0 {
		c.log.Warn("packets lost outside the radio model", "trial", t.name, "out_of_buffers", overrun, "device_down", writeErrors)
	}
	var err error
	if t.capture != nil {
		err = t.capture.finish()
	}
	var ierr, herr error
	r.Ideal, r.CodedBound, ierr = t.bounds.wait()
	r.Channels, herr = link.History(t.network, t.seed, r.Duration)
	return r, errors.Join(err, ierr, herr)
}

// A trial's connection closes when its driver has gone. Were the next trial to
// empty the radios' queues in the midst of that, the kernels would send it all
// again, into the next trial.
const (
	settleFor   = 10 * time.Millisecond // with nothing on the air, nothing will be answered any more
	settleEvery = 2 * time.Millisecond
	settleMax   = 8 * time.Second // in the report of the trial; a full packet takes 2.5 s at 4800 bit/s

	quietSlice = time.Second // of one request, so that others are answered meanwhile
	quietMost  = 10 * time.Second
)

// settle waits until the air is quiet, for settleMax at most; false when the emulator is
// ending.
func (c *control) settle() bool {
	c.busy = time.Now()
	_, ok := c.await(settleFor, settleEvery, settleMax)
	return ok
}

// quiet reports whether the radios have carried nothing for twice the time that a full
// packet takes over the slowest link, and for q.For; it waits for that for quietSlice at
// most, and empties the queues first where q says so.
//
// On a slow radio what a trial leaves takes longer than settleMax. Were the next trial to
// empty the queues then, a close in them would not arrive, and the other end would send
// for minutes, into the trials of other protocols.
func (c *control) quiet(q radiocontrol.Quiet) (bool, error) {
	if q.Flush && c.trial == nil {
		m, err := c.e.loop.prepare(c.e.loop.network, c.nodes, 0)
		if err != nil {
			return false, fmt.Errorf("quiet: %w", err)
		}
		if !c.e.loop.do(func(l *loop) { l.install(m) }) {
			return false, errEnded
		}
		c.busy = time.Now()
	}
	long := time.Duration(0)
	if !c.e.loop.do(func(l *loop) {
		for i := range l.radios {
			for _, r := range l.radios[i].net.Radios() {
				if r.RateBitsPerSecond > 0 {
					long = max(long, r.Delay+time.Duration(float64(8*l.radios[i].mtu)/r.RateBitsPerSecond*float64(time.Second)))
				}
			}
		}
	}) {
		return false, errEnded
	}
	long = min(max(2*long, settleFor, q.For), quietMost)
	quiet, ok := c.await(long, min(max(long/20, settleEvery), quietSlice/4), quietSlice)
	if !ok {
		return false, errEnded
	}
	return quiet, nil
}

// await looks at the radios every so often until they were quiet for so long, for most at
// most; ok is false when the emulator is ending.
func (c *control) await(long, every, most time.Duration) (quiet, ok bool) {
	for began := time.Now(); ; time.Sleep(min(every, long-time.Since(c.busy))) {
		inside := 0
		if !c.e.loop.do(func(l *loop) {
			l.release()
			inside = l.inside()
		}) {
			return false, false
		}
		now := time.Now()
		if inside > 0 {
			c.busy = now
		}
		if quiet = now.Sub(c.busy) >= long; quiet || now.Sub(began) >= most {
			return quiet, true
		}
	}
}

func (c *control) status() (*radiocontrol.Status, error) {
	s := &radiocontrol.Status{PID: os.Getpid()}
	if c.trial != nil {
		s.Trial = c.trial.name
	}
	if !c.e.loop.do(func(l *loop) {
		l.release()
		s.Network, s.Radios = l.network, l.radios[0].net.Radios()
		s.Unroutable, s.Oversized = l.unroutable, l.oversized
		s.LateMedian, s.LateMax = l.late.quantile(0.5), l.late.max
	}) {
		return nil, errEnded
	}
	return s, nil
}

// abandon gives up the trial that runs, if any; its packet log is completed.
func (c *control) abandon() {
	t := c.trial
	c.trial = nil
	if t == nil {
		return
	}
	c.e.loop.do(func(l *loop) { l.observe(nil, nil) })
	if t.capture != nil {
		if err := t.capture.finish(); err != nil {
			c.log.Warn("packet log is incomplete", "trial", t.name, "error", err)
		}
	}
	t.bounds.stop()
}

// forecast computes Ideal and the coded bound beside the trial.
type forecast struct {
	done         chan struct{}
	halt         chan struct{}
	ideal, coded []time.Duration
	err          error
}

// foresee starts the computation on a thread that gives way to the loop's.
func foresee(n *radio.Network, seed uint64, flows []radiocontrol.Flow) *forecast {
	f := &forecast{done: make(chan struct{}), halt: make(chan struct{})}
	go func() {
		defer close(f.done)
		yieldToOthers()
		for _, flow := range flows {
			d, err := ideal.OfBoth(n, [2]uint64{seed, secondSeed(seed)}, flow, radiocontrol.IdealHorizon, func() bool {
				select {
				case <-f.halt:
					return true
				default:
					return false
				}
			})
			if err != nil {
				f.err = fmt.Errorf("ideal and coded bound from %s to %s: %w", flow.From, flow.To, err)
				return
			}
			f.ideal, f.coded = append(f.ideal, d.Ideal), append(f.coded, d.Coded)
		}
	}()
	return f
}

func (f *forecast) wait() (ideal, coded []time.Duration, err error) {
	<-f.done
	return f.ideal, f.coded, f.err
}

func (f *forecast) stop() {
	close(f.halt)
	<-f.done
}
