package core

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var (
	channelCount = flag.Int("channels", 120, "how many random channels TestChannels runs")
	firstChannel = flag.Uint64("channel", 1, "seed of the first of them")
)

// TestChannels runs two ends with applications over random channels and holds
// what the protocol promises against what happens.
func TestChannels(t *testing.T) {
	for i := range *channelCount {
		seed := *firstChannel + uint64(i)
		if err := runChannel(seed, t.Logf); err != nil {
			t.Fatalf("channel %d: %v\nrun it alone: go test ./protocols/lttcp/core -run TestChannels -channel %d -channels 1 -v", seed, err, seed)
		}
	}
}

// A server that speaks first is heard, however many of the client's first packets are
// lost: half of all are, and the server repeats its answer only so often.
func TestClientIsHeard(t *testing.T) {
	for seed := range uint64(300) {
		path := func() *path { return &path{rate: 1e6, delay: 30 * time.Millisecond, queue: 100, loss: 0.5} }
		s := newSim(Config{}, Config{}, path(), path(), seed)
		said := false
		s.work = func() {
			if c := s.conns[1]; c != nil && c.Open() && !said {
				n, err := c.Write([]byte("R"), 100, false)
				said = n == 1 && err == nil
			}
		}
		for s.step(5*time.Minute) && !s.conns[0].Readable() {
		}
		if !s.conns[0].Readable() {
			t.Errorf("seed %d: the client has heard nothing", seed)
		}
	}
}

// trial is one random channel with its applications.
type trial struct {
	*sim
	rnd     *rand.Rand
	apps    [2]*app
	actions []action // in order of time
	limit   time.Duration
	err     error
}

type action struct {
	at time.Duration
	do func()
}

// app is the application at one end: it writes, reads, and finishes.
type app struct {
	name   string
	source *rand.ChaCha8 // of what it sends
	expect *rand.ChaCha8 // of what the other one sends
	left   int           // bytes to be written
	sent   int
	got    int
	eof    bool
	rest   []byte // generated, not yet taken
	pauses time.Duration
	slow   int // reads at most so many bytes at a time
	most   int
	ends   bool
}

func logUniform(r *rand.Rand, from, to float64) float64 {
	return from * math.Pow(to/from, r.Float64())
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func runChannel(seed uint64, logf func(string, ...any)) error {
	x := newTrial(seed)
	for x.err == nil && x.step(x.limit) {
		x.check()
		if x.over() {
			break
		}
	}
	if x.err == nil {
		x.err = x.verdict()
	}
	if x.err != nil {
		logf("channel %d at %v: %d steps, paths %+v %+v", seed, x.now, x.steps, *x.paths[0], *x.paths[1])
		for i, c := range x.conns {
			if c != nil {
				logf("end %d: state %d err %v una %d cut %d limit %d unsent %d fin %d/%v blocks %d next %d of %d\n  %+v\n  %+v", i, c.state, c.err,
					c.out.una, c.out.cut, c.out.limit, len(c.out.unsent), c.out.fin, c.out.finDone, len(c.out.blocks), c.in.next, c.in.fin, c.Stats(), c.config)
			}
		}
	}
	return x.err
}

func randomPath(r *rand.Rand) *path {
	p := &path{rate: logUniform(r, 2e3, 1e8), delay: time.Duration(logUniform(r, 1e5, 6e8)), queue: 4 + r.IntN(200)}
	if r.IntN(2) == 0 {
		p.marks = 2 + r.IntN(p.queue)
	}
	if r.IntN(3) == 0 {
		p.jitter = time.Duration(logUniform(r, 1e5, 2e8))
	}
	if r.IntN(3) == 0 {
		p.duplicate = r.Float64() * 0.3
	}
	if r.IntN(3) == 0 {
		p.corrupt = r.Float64() * 0.1
	}
	p.loss = pick(r, 0, 0, 0.01, 0.1, 0.3, 0.5)
	if p.burst = pick(r, 1.0, 1, 4, 10); p.burst > 1 {
		// One packet a timeout, of which ten in a row are lost, takes a minute each.
		p.loss = min(p.loss, 0.1)
	}
	return p
}

func randomConfig(r *rand.Rand) Config {
	return Config{
		Segment: pick(r, 0, 64, 500, 1452, LongestSegment), Least: pick(r, 0, 16, 64), Granularity: pick(r, 0, 1, 4, 50),
		Buffer: pick(r, MinBuffer, 50_000, 1<<20), FixedSegment: r.IntN(3) == 0, NoProactive: r.IntN(3) == 0,
		NoReactive: r.IntN(3) == 0, LossResponse: r.IntN(4) == 0,
	}
}

func newTrial(seed uint64) *trial {
	r := rand.New(rand.NewPCG(seed, 99))
	paths := [2]*path{randomPath(r), randomPath(r)}
	if r.IntN(2) == 0 { // usually the two ways have something to do with each other
		paths[1].rate, paths[1].delay = paths[0].rate, paths[0].delay
	}
	x := &trial{sim: newSim(randomConfig(r), randomConfig(r), paths[0], paths[1], seed), rnd: r}
	if r.IntN(2) == 0 {
		x.hostile = rand.New(rand.NewPCG(seed, 5))
	}
	slow := min(paths[0].rate, paths[1].rate)
	for i := range x.apps {
		a := &app{name: []string{"client", "server"}[i], left: int(logUniform(r, 1, min(slow*20, 500_000))), slow: pick(r, 1<<20, 1<<20, 100, 5000)}
		if r.IntN(8) == 0 {
			a.left = 0
		}
		var key [32]byte
		key[0], key[1], key[2] = byte(i), byte(seed), byte(seed>>8)
		a.source = rand.NewChaCha8(key)
		key[0] = byte(1 - i)
		a.expect = rand.NewChaCha8(key)
		a.most = pick(r, 1, 4096, 100_000)
		x.apps[i] = a
	}
	x.work, x.nextWork = x.applications, x.nextAction
	x.plan()
	return x
}

// plan draws what happens when.
func (x *trial) plan() {
	r := x.rnd
	span := time.Duration(logUniform(r, 5e8, 6e10))
	at := func() time.Duration { return time.Second + time.Duration(r.Int64N(int64(span))) }
	add := func(t time.Duration, f func()) { x.actions = append(x.actions, action{t, f}) }
	for end := range 2 {
		a := x.apps[end]
		for range r.IntN(4) {
			add(at(), func() { a.pauses = x.now + time.Duration(r.Int64N(int64(20*time.Second))) })
		}
		total := a.left
		a.left = min(a.left, 1)
		for total -= a.left; total > 0; {
			n := min(total, 1+r.IntN(total))
			total -= n
			add(at(), func() { a.left += n })
		}
	}
	for range r.IntN(3) {
		from, long, way := at(), time.Duration(logUniform(r, 1e8, 6e10)), r.IntN(3)
		add(from, func() {
			until := x.now + long
			for i, p := range x.paths {
				if way == 2 || way == i {
					p.blocked = func(now time.Duration) bool { return now < until }
				}
			}
		})
	}
	slices.SortStableFunc(x.actions, func(a, b action) int { return int(a.at - b.at) })
	add(time.Second+span, func() { x.apps[0].ends, x.apps[1].ends = true, true })
	// Timeouts double, so that an unlucky block takes as long as all before it.
	x.limit = span + 6*time.Hour
}

func (x *trial) nextAction() time.Duration {
	next := x.limit
	for i, a := range x.apps {
		switch c := x.conns[i]; {
		case a.pauses > x.now:
			next = min(next, a.pauses)
		case c != nil && !a.eof && c.Readable(): // it reads slowly
			next = min(next, x.now+time.Millisecond)
		}
	}
	if len(x.actions) > 0 {
		next = min(next, max(x.actions[0].at, x.now+1))
	}
	return next
}

func (x *trial) fail(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}

func (x *trial) applications() {
	for len(x.actions) > 0 && x.actions[0].at <= x.now {
		x.actions[0].do()
		x.actions = x.actions[1:]
	}
	for end, c := range x.conns {
		if c == nil || !c.Open() {
			continue
		}
		a := x.apps[end]
		x.write(c, a)
		if x.now >= a.pauses {
			x.read(c, a, x.apps[1-end])
		}
		if a.ends && a.left == 0 && len(a.rest) == 0 {
			c.Finish()
		}
	}
}

func (x *trial) write(c *Conn, a *app) {
	for a.left > 0 || len(a.rest) > 0 {
		if len(a.rest) == 0 {
			a.rest = make([]byte, min(a.left, a.most, 10_000))
			_, _ = a.source.Read(a.rest)
			a.left -= len(a.rest)
		}
		n, err := c.Write(a.rest, 40_000, a.left > 0)
		if err != nil {
			x.fail("%s: write: %v", a.name, err)
			return
		}
		a.sent += n
		if a.rest = a.rest[n:]; n == 0 {
			return
		}
	}
}

func (x *trial) read(c *Conn, a, from *app) {
	b := make([]byte, min(a.slow, 100_000))
	for {
		n, eof := c.Read(b)
		want := make([]byte, n)
		_, _ = a.expect.Read(want)
		if !bytes.Equal(b[:n], want) {
			x.fail("%s: bytes %d to %d are not those that were sent", a.name, a.got, a.got+n)
		}
		if a.got += n; a.got > from.sent {
			x.fail("%s: %d bytes arrived, %d were sent", a.name, a.got, from.sent)
		}
		if eof && (a.got != from.sent || !from.ends) {
			x.fail("%s: the end after %d of %d bytes", a.name, a.got, from.sent)
		}
		a.eof = a.eof || eof
		if n == 0 || a.slow < 1<<20 {
			return
		}
	}
}

// over reports whether both ends have everything and know that the other one has.
// The server may have forgotten the connection before the client learned it.
func (x *trial) over() bool {
	for i, c := range x.conns {
		if c == nil || !x.apps[i].eof {
			return false
		}
		if over, _ := c.Closed(); !over && (i == 1 || x.listener.Len() > 0) {
			return false
		}
	}
	return true
}

// check holds what must be true at any moment.
func (x *trial) check() {
	for end, c := range x.conns {
		if c == nil {
			continue
		}
		x.checkDeadline(end, c)
		if over, err := c.Closed(); over && err != nil {
			x.fail("%s ended: %v", x.apps[end].name, err)
		}
		if held, most := c.Stats().Held, 3*c.config.Buffer+mostSegments*LongestSegment; held > most {
			x.fail("%s holds %d bytes, expected at most %d", x.apps[end].name, held, most)
		}
		if n := len(c.out.blocks); n > mostBlocks {
			x.fail("%s keeps %d blocks", x.apps[end].name, n)
		}
		if s := c.out; s.pipe < 0 || s.una > s.cut+1 || s.window.cwnd <= 0 {
			x.fail("%s: %d bytes under way, window %d, %d of %d acknowledged", x.apps[end].name, s.pipe, s.window.cwnd, s.una, s.cut)
		}
	}
	if x.steps > 3_000_000 {
		x.fail("no end after %d steps", x.steps)
	}
}

// checkDeadline holds that an end which has been asked for all that it has to do
// now wants to be asked again later.
func (x *trial) checkDeadline(end int, c *Conn) {
	at, ok := c.Deadline()
	if !ok || at > x.now {
		return
	}
	c.Tick(x.now)
	x.flush()
	if at, ok = c.Deadline(); ok && at <= x.now {
		x.fail("%s at %v has a deadline that has passed (%v)", x.apps[end].name, x.now, at)
	}
}

// verdict is what must be true at the end.
func (x *trial) verdict() error {
	if x.conns[1] == nil {
		return errors.New("no connection")
	}
	for end, a := range x.apps {
		if from := x.apps[1-end]; a.got != from.sent || from.left > 0 {
			return fmt.Errorf("%s has %d of %d bytes after %v", a.name, a.got, from.sent+from.left, x.now)
		}
	}
	if !x.over() {
		return fmt.Errorf("not ended after %v", x.now)
	}
	return nil
}
