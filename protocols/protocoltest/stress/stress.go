package stress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"linktrial/internal/payload"
	"linktrial/protocols/contract"
)

// Driver is one build of a driver.
type Driver struct {
	// Dir has driver.yaml and the program.
	Dir string
	// Options are the driver's beside the manifest's defaults.
	Options map[string]any
	// Environment is added to that of every driver, as "NAME=value".
	Environment []string
}

// Way is who carries the transfers: a driver's client and server, with relay
// processes between them, in the order from the client to the server.
type Way struct {
	Ends   Driver
	Relays []Driver
}

// Options are the extent. Zero values are the defaults.
type Options struct {
	// Transfers is how many must end by themselves, with a result.
	Transfers int
	// Clients is how many run at once; 4.
	Clients int
	// Bytes is the size of the largest transfer; the smallest has none; 20 000.
	Bytes int64
	// Load is how many goroutines keep processors busy beside them.
	Load int
	// Round is after how many transfers the server, and relays, are told to stop
	// while transfers run, and started again; 200.
	Round int
	// Patience bounds everything that is waited for; a minute.
	Patience time.Duration
	// Seed decides sizes, and which clients are told to stop and when.
	Seed uint64
	// Progress is called after every round; it can be nil.
	Progress func(Report)
}

// Report is what came of it. Crashes and Failures list the first of each.
type Report struct {
	Transfers   int // ended with a result
	Stopped     int // clients that were told to stop
	Listeners   int // servers and relays that were told to stop while transfers ran
	Crashed     int
	Crashes     []string
	Failed      int // ended with an error although nobody was told to stop
	Failures    []string
	Unsupported string // the driver's reason for not running on this node
}

// listed bounds the texts of a report.
const listed = 10

const (
	// stopEvery is the share of clients that are told to stop: one in so many.
	stopEvery = 8
	// endless is a size that no transfer reaches before it is told to stop, in bytes,
	// endlessTime what bounds a probe instead.
	endless     = 1 << 40
	endlessTime = time.Hour
	// probeLasts is the time of a probe, whose size is not in bytes.
	probeLasts = 5 * time.Millisecond
)

func (o *Options) fill() {
	set := func(v *int, otherwise int) {
		if *v == 0 {
			*v = otherwise
		}
	}
	set(&o.Clients, 4)
	set(&o.Round, 200)
	if o.Bytes == 0 {
		o.Bytes = 20_000
	}
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
}

// run is one call of Run.
type run struct {
	o      Options
	ends   *build
	relays []*build
	net    *network
	rng    *rand.Rand // of the goroutine that calls Run, and of others under mu

	mu     sync.Mutex
	report Report
	last   uint64        // number of the last transfer
	usual  time.Duration // how long a client takes, about
}

// Run carries the transfers. It ends early when ctx does. The error is of Run
// itself; what is wrong with the driver is in the report.
func Run(ctx context.Context, w Way, o Options) (*Report, error) {
	o.fill()
	r := &run{o: o, rng: rand.New(rand.NewPCG(o.Seed, 0)), usual: 20 * time.Millisecond}
	var err error
	if r.ends, err = load(w.Ends); err != nil {
		return nil, err
	}
	for _, d := range w.Relays {
		b, err := load(d)
		if err != nil {
			return nil, err
		}
		r.relays = append(r.relays, b)
	}
	if r.net, err = newNetwork(); err != nil {
		return nil, err
	}
	defer r.net.close()
	loaded, unload := context.WithCancel(ctx)
	defer unload()
	var busy sync.WaitGroup
	defer busy.Wait()
	for range o.Load {
		busy.Go(func() { spin(loaded) })
	}
	defer unload()
	for ctx.Err() == nil && r.report.Transfers < o.Transfers && r.report.Failed+r.report.Crashed <= min(o.Transfers, enough) && r.report.Unsupported == "" {
		if err := r.round(ctx); err != nil {
			return &r.report, err
		}
		if o.Progress != nil {
			o.Progress(r.report)
		}
	}
	return &r.report, ctx.Err()
}

// enough crashes and failures: more of them say nothing new, and each may take as long as
// a client waits for its server.
const enough = 20

// spin keeps a processor busy.
func spin(ctx context.Context) {
	b := make([]byte, 1<<16)
	for at := uint64(0); ctx.Err() == nil; at++ {
		payload.NewKey(nil, at).Fill(b, 0)
	}
}

// round starts the server, lets clients carry transfers, and stops it while they do.
func (r *run) round(ctx context.Context) error {
	entry, listeners, err := r.listen(ctx)
	if err != nil || listeners == nil {
		return err
	}
	left := min(r.o.Round, r.o.Transfers-r.report.Transfers)
	var mu sync.Mutex
	take := func() bool {
		mu.Lock()
		defer mu.Unlock()
		left--
		return left >= 0
	}
	var all sync.WaitGroup
	for range r.o.Clients {
		all.Go(func() {
			for ctx.Err() == nil && running(listeners) && take() {
				r.transfer(ctx, entry, listeners)
			}
		})
	}
	all.Wait()
	r.stopInTheMiddle(ctx, entry, listeners)
	return nil
}

// listen starts the server and the relays, and returns where clients connect; no
// listeners where the driver cannot run here, or has crashed at once.
func (r *run) listen(ctx context.Context) (entry contract.Endpoint, listeners []*child, err error) {
	roles := []*build{r.ends}
	for i := len(r.relays) - 1; i >= 0; i-- {
		roles = append(roles, r.relays[i])
	}
	for i, b := range roles {
		p := b.parameters(contract.RoleServer)
		if i > 0 {
			p.Role, p.Remote = contract.RoleRelay, entry
		}
		p.Local = r.net.endpoint()
		c, err := r.start(b, p)
		if err != nil {
			r.end(listeners)
			return entry, nil, err
		}
		listeners = append(listeners, c)
		if c.await(ctx, c.ready, r.o.Patience) {
			entry = p.Local
			continue
		}
		r.note(c, false)
		if reason := c.unsupported(); reason != "" {
			r.report.Unsupported = reason
		} else if c.crash() == "" {
			r.failed(c, "not ready")
		}
		r.end(listeners)
		return entry, nil, nil
	}
	return entry, listeners, nil
}

// transfer carries one; some of them are told to stop.
func (r *run) transfer(ctx context.Context, entry contract.Endpoint, listeners []*child) {
	r.mu.Lock()
	p := r.client(entry, r.rng.Int64N(r.o.Bytes+1))
	stop, after := r.rng.IntN(stopEvery) == 0, time.Duration(r.rng.Int64N(int64(r.usual)+1))
	r.mu.Unlock()
	if r.ends.probe {
		p.Transfer.SizeBytes, p.Transfer.DurationMS = 0, probeLasts.Milliseconds()
	}
	began := time.Now()
	c, err := r.start(r.ends, p)
	if err != nil {
		r.problem("start the client: " + err.Error())
		return
	}
	if stop {
		c.await(ctx, nil, after)
		c.terminate()
	}
	if !c.await(ctx, nil, r.o.Patience) {
		c.hung = ctx.Err() == nil
		c.kill()
		<-c.ended
	}
	if crashed := r.note(c, false); crashed || ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	switch {
	case c.results > 0:
		r.report.Transfers++
		r.usual += (time.Since(began) - r.usual) / 16
	case stop:
		r.report.Stopped++
	}
	r.mu.Unlock()
	if c.results == 0 && !stop && !r.aListenerEnded(ctx, listeners) {
		r.failed(c, "")
	}
}

// client are the parameters of the next transfer.
func (r *run) client(entry contract.Endpoint, size int64) *contract.Parameters {
	r.last++
	p := r.ends.parameters(contract.RoleClient)
	p.Remote = entry
	p.Local.Address = entry.Address
	p.Transfer = contract.Transfer{ID: fmt.Sprintf("%032x", r.last), SizeBytes: size}
	if r.ends.probe {
		p.Transfer.Seed = r.last * 0x9E3779B97F4A7C15
	}
	return p
}

// linger is how long after a client's failure the end of the server that caused it
// is seen at the latest.
const linger = time.Second

// aListenerEnded reports whether the server or a relay has ended by itself.
func (r *run) aListenerEnded(ctx context.Context, listeners []*child) bool {
	for end := time.Now().Add(linger); ; {
		if !running(listeners) {
			return true
		}
		if !time.Now().Before(end) || ctx.Err() != nil {
			return false
		}
		listeners[0].await(ctx, nil, 10*time.Millisecond)
	}
}

// stopInTheMiddle tells server and relays to stop while every client carries a
// transfer that does not end by itself, and then the clients.
func (r *run) stopInTheMiddle(ctx context.Context, entry contract.Endpoint, listeners []*child) {
	var clients []*child
	for range r.o.Clients {
		p := r.client(entry, endless)
		if r.ends.probe {
			p.Transfer.SizeBytes, p.Transfer.DurationMS = 0, endlessTime.Milliseconds()
		}
		c, err := r.start(r.ends, p)
		if err != nil {
			r.problem("start the client: " + err.Error())
			continue
		}
		clients = append(clients, c)
	}
	for _, c := range clients[:len(clients)/2] {
		c.await(ctx, c.connected, r.o.Patience)
	}
	for _, c := range listeners {
		r.stop(ctx, c)
		r.report.Listeners++
	}
	for _, c := range clients {
		r.stop(ctx, c)
		r.report.Stopped++
	}
}

// stop tells a child to stop, and notes how it ended.
func (r *run) stop(ctx context.Context, c *child) {
	c.terminate()
	if !c.await(context.WithoutCancel(ctx), nil, r.o.Patience) {
		c.hung = true
		c.kill()
		<-c.ended
	}
	r.note(c, true)
}

// end ends what is left of listeners that cannot be used.
func (r *run) end(listeners []*child) {
	for _, c := range listeners {
		c.kill()
		<-c.ended
	}
}

// note counts the crash of an ended child; stopped: a listener must have exit code 0.
func (r *run) note(c *child, stopped bool) bool {
	what := c.crash()
	if what == "" && stopped && c.role != contract.RoleClient && c.code != contract.ExitOK && c.signal == 0 {
		what = fmt.Sprintf("exit code %d after SIGTERM%s", c.code, c.said())
	}
	if what == "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Crashed++
	if len(r.report.Crashes) < listed {
		r.report.Crashes = append(r.report.Crashes, fmt.Sprintf("after %d transfers, %s: %s", r.report.Transfers, c.role, what))
	}
	return true
}

func (r *run) failed(c *child, why string) {
	r.problem(fmt.Sprintf("%s: %s%s", c.role, why, c.said()))
}

func (r *run) problem(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Failed++
	if len(r.report.Failures) < listed {
		r.report.Failures = append(r.report.Failures, text)
	}
}

func running(listeners []*child) bool {
	for _, c := range listeners {
		select {
		case <-c.ended:
			return false
		default:
		}
	}
	return true
}

// environment of every driver process.
func environment(more []string) []string { return append(contract.Environment(os.LookupEnv), more...) }
