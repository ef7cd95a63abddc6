package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"linktrial/agents/agent"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/backoff"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/stats"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/authority"
)

// How many connections are hostile, and for how long.
var (
	hostileConnections = 1000
	hostileDuration    = time.Minute
)

// hostileBound is by how much the orchestrator's memory may grow, in MiB: 2048 connections
// may be open, each with TLS and the buffers of a request within its limits, and as much
// again is garbage before the collector runs.
const hostileBound = 512

// hostilePlan is trials of a second, one after the other for the whole time.
const hostilePlan = `name: bench-hostile
radio: reference-link
topology: vip-lot
size: 1 MiB
treatments:
  - {name: tcp, protocol: tcp, options: {congestion: cubic}}
iterations: %d
seed: 1
limits: {pause: 1s, attempts: 3}
`

// benchHostile runs trials on an orchestrator with TLS while callers without a login
// take what they can of it.
func benchHostile(ctx context.Context, s *setting.Settings) error {
	fmt.Printf("\n%d hostile connections without a login from %d addresses, for %s, while trials run (orchestrator with TLS, nodes and traffic on the loopback)\n", hostileConnections, sources, hostileDuration)
	dir, remove, err := folder("hostile")
	if err != nil {
		return err
	}
	defer remove()
	b := &hostile{s: s, dir: dir}
	if err := b.serve(ctx); err != nil {
		return fmt.Errorf("bench of hostile connections: %w", err)
	}
	defer b.end()
	if err := b.measure(ctx); err != nil {
		return fmt.Errorf("bench of hostile connections: %w", err)
	}
	return nil
}

type hostile struct {
	s              *setting.Settings
	dir, data      string
	address, token string
	cmd            *exec.Cmd
	ended          chan error
	people         *http.Client // of an admin
}

// serve starts an orchestrator as a process of its own, and makes an admin.
func (b *hostile) serve(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.address, b.data = l.Addr().String(), filepath.Join(b.dir, "data")
	l.Close()
	log, err := os.Create(filepath.Join(b.dir, "serve.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	names := make([]string, 0, len(radio.Roles))
	for _, r := range radio.Roles {
		names = append(names, string(r))
	}
	b.cmd = exec.Command(b.s.Program, append([]string{"serve", "--tls", "--listen", b.address, "--data", b.data, "--issue-tokens", strings.Join(names, ","), "--issue-tokens-to", filepath.Join(b.dir, "tokens")}, b.s.Folders()...)...)
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if err := process.Start(b.cmd); err != nil {
		return err
	}
	b.ended = make(chan error, 1)
	go func() { b.ended <- b.cmd.Wait() }()
	if err := b.admin(ctx); err != nil {
		b.end()
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

// end stops the orchestrator.
func (b *hostile) end() {
	if b.people != nil {
		b.people.CloseIdleConnections()
	}
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-b.ended: //nolint:errcheck // it was told to end
	case <-time.After(time.Minute):
		fmt.Fprintln(os.Stderr, "error: the orchestrator of the bench does not end")
		_ = b.cmd.Process.Kill()
		<-b.ended //nolint:errcheck // it was killed
	}
}

func (b *hostile) url() string { return "https://" + b.address }

// admin waits for the orchestrator, and logs an admin in.
func (b *hostile) admin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	setup, err := b.awaitFile(ctx, filepath.Join(b.data, access.SetupFile))
	if err != nil {
		return err
	}
	ca, err := b.awaitFile(ctx, filepath.Join(b.data, authority.Folder, "ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("the authority's certificate cannot be read")
	}
	p := new(http.Protocols)
	p.SetHTTP2(true)
	b.people = &http.Client{Transport: &http.Transport{Protocols: p, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	c := linktrialv1connect.NewAccessServiceClient(b.people, b.url(), connect.WithGRPC())
	const name, password = "bench", "a horse, a battery, a staple"
	add := connect.NewRequest(&linktrialv1.AddUserRequest{Name: name, Role: linktrialv1.Role_ROLE_ADMIN, Password: password})
	add.Header().Set("Authorization", "Bearer "+strings.TrimSpace(string(setup)))
	for {
		_, err := c.AddUser(ctx, add)
		if err == nil {
			break
		}
		if connect.CodeOf(err) != connect.CodeUnavailable || !backoff.Sleep(ctx, 50*time.Millisecond) {
			return err
		}
	}
	in, err := c.Login(ctx, connect.NewRequest(&linktrialv1.LoginRequest{User: name, Password: password, TokenName: "bench"}))
	if err != nil {
		return err
	}
	b.token = in.Msg.Token
	return nil
}

// awaitFile reads a file as soon as it is there.
func (b *hostile) awaitFile(ctx context.Context, path string) ([]byte, error) {
	for {
		text, err := os.ReadFile(path)
		if err == nil && len(text) > 0 {
			return text, nil
		}
		select {
		case err := <-b.ended:
			b.ended <- err
			return nil, fmt.Errorf("the orchestrator has ended: %w", err)
		default:
		}
		if !backoff.Sleep(ctx, 50*time.Millisecond) {
			return nil, fmt.Errorf("the orchestrator does not start: %w", ctx.Err())
		}
	}
}

// authorized adds the admin's token to a call.
func authorized[M any](b *hostile, m *M) *connect.Request[M] {
	r := connect.NewRequest(m)
	r.Header().Set("Authorization", "Bearer "+b.token)
	return r
}

func (b *hostile) operators() linktrialv1connect.OperatorServiceClient {
	return linktrialv1connect.NewOperatorServiceClient(b.people, b.url(), connect.WithGRPC())
}

// agents starts the three nodes, and returns when they are connected.
func (b *hostile) agents(ctx context.Context, running *sync.WaitGroup) error {
	failed := make(chan error, len(radio.Roles))
	for _, role := range radio.Roles {
		cfg := agent.Config{Name: string(role), Role: role, Orchestrator: b.url(), TokenFile: filepath.Join(b.dir, "tokens", string(role)+".token"), StateDir: filepath.Join(b.dir, "agents", string(role)),
			DriversDir: b.s.Drivers, Device: "lo", RadioAddress: "127.0.0.1", Peers: map[radio.Role]string{}, Version: b.s.Version, FloorBytes: -1, Logger: slog.New(slog.DiscardHandler)}
		for _, r := range radio.Roles {
			cfg.Peers[r] = "127.0.0.1"
		}
		running.Go(func() {
			if err := agent.Run(ctx, cfg); err != nil {
				failed <- err
			}
		})
	}
	for limit := time.Now().Add(time.Minute); ; {
		res, err := b.operators().ListNodes(ctx, authorized(b, &linktrialv1.ListNodesRequest{}))
		if err != nil {
			return err
		}
		n := 0
		for _, x := range res.Msg.Nodes {
			if x.Connected {
				n++
			}
		}
		if n == len(radio.Roles) {
			return nil
		}
		select {
		case err := <-failed:
			return err
		default:
		}
		if time.Now().After(limit) || !backoff.Sleep(ctx, 50*time.Millisecond) {
			return errors.Join(fmt.Errorf("%d of %d nodes are connected", n, len(radio.Roles)), ctx.Err())
		}
	}
}

// look is the memory of the orchestrator in MiB, sampled.
type look struct {
	before, under []float64
	calls         []time.Duration // of a person who is logged in, during the attack
}

func (b *hostile) measure(ctx context.Context) error {
	actx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if err := b.agents(actx, &running); err != nil {
		return err
	}
	trials := int(hostileDuration/time.Second)*9/10 + 10 // a trial takes a bit more than its pause
	started, err := b.operators().StartPlan(ctx, authorized(b, &linktrialv1.StartPlanRequest{File: "bench-hostile.yaml", Text: fmt.Appendf(nil, hostilePlan, trials)}))
	if err != nil {
		return err
	}
	if p := started.Msg.Problems; len(p) > 0 {
		return fmt.Errorf("the plan has a problem: %s", p[0])
	}
	run := started.Msg.RunIds[0]
	if err := b.await(ctx, run, "its third trial", func(r *linktrialv1.Run) bool { return r.TrialsEnded >= 3 }); err != nil {
		return err
	}
	a, err := newAttacker(b.address)
	if err != nil {
		return err
	}
	var l look
	for range 10 {
		l.before = append(l.before, b.memory())
		if !backoff.Sleep(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
	}
	cpu := processorSeconds(b.cmd.Process.Pid)
	hctx, stop := context.WithTimeout(ctx, hostileDuration)
	defer stop()
	var watching sync.WaitGroup
	watching.Go(func() { b.watch(hctx, &l) })
	watching.Go(func() { b.call(hctx, &l) })
	var most int64
	watching.Go(func() {
		for backoff.Sleep(hctx, 100*time.Millisecond) {
			most = max(most, a.open.Load())
		}
	})
	a.run(hctx, hostileConnections)
	watching.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	used := processorSeconds(b.cmd.Process.Pid) - cpu
	if err := b.await(ctx, run, "its end", func(r *linktrialv1.Run) bool { return terminal.Over(r.State) }); err != nil {
		return err
	}
	if !backoff.Sleep(ctx, 5*time.Second) { // the collector returns what is free
		return ctx.Err()
	}
	after := b.memory()
	r, err := b.operators().GetRun(ctx, authorized(b, &linktrialv1.GetRunRequest{RunId: run}))
	if err != nil {
		return err
	}
	if len(l.calls) == 0 {
		return errors.New("no call of a person was answered during the attack")
	}
	grown := slices.Max(l.under) - stats.Median(l.before)
	if err := terminal.Columns("METRIC\tVALUE", func(w io.Writer) {
		fmt.Fprintf(w, "hostile connections, most at a time\t%d\n", most)
		fmt.Fprintf(w, "hostile connections opened, one after another\t%d\n", a.opened.Load())
		fmt.Fprintf(w, "orchestrator's memory before\t%.0f MiB\n", stats.Median(l.before))
		fmt.Fprintf(w, "orchestrator's memory under attack, most\t%.0f MiB\n", slices.Max(l.under))
		fmt.Fprintf(w, "orchestrator's memory 5 s after the run's end\t%.0f MiB\n", after)
		fmt.Fprintf(w, "orchestrator's processor time, share of one processor\t%.0f %%\n", 100*used/hostileDuration.Seconds())
		fmt.Fprintf(w, "calls of a person who is logged in, median and slowest of %d\t%.0f and %.0f ms\n", len(l.calls), stats.Median(milliseconds(l.calls)), slices.Max(milliseconds(l.calls)))
		fmt.Fprintf(w, "trials, and of these ended\t%d, %d\n", r.Msg.Run.Trials, r.Msg.Run.TrialsEnded)
		fmt.Fprintf(w, "attempts that failed\t%d\n", r.Msg.Run.AttemptsFailed)
		fmt.Fprintf(w, "run\t%s\n", terminal.StateWord(r.Msg.Run.State))
	}); err != nil {
		return err
	}
	switch x := r.Msg.Run; {
	case x.State != linktrialv1.RunState_RUN_STATE_COMPLETED || x.TrialsEnded != x.Trials || int(x.Trials) != trials || int(x.AttemptsFailed) > trials/10: // a busy machine disturbs some, too
		return fmt.Errorf("the run lost something: %d of %d trials ended, %d attempts failed: %s", x.TrialsEnded, x.Trials, x.AttemptsFailed, x.Message)
	case grown > hostileBound:
		return fmt.Errorf("the orchestrator's memory grew by %.0f MiB, expected at most %d", grown, hostileBound)
	}
	return nil
}

// await blocks until a run is as it should be, for as long as the attack takes and two minutes.
func (b *hostile) await(ctx context.Context, run, what string, is func(*linktrialv1.Run) bool) error {
	for limit := time.Now().Add(hostileDuration + 2*time.Minute); ; {
		r, err := b.operators().GetRun(ctx, authorized(b, &linktrialv1.GetRunRequest{RunId: run}))
		if err != nil {
			return err
		}
		if is(r.Msg.Run) {
			return nil
		}
		if terminal.Over(r.Msg.Run.State) || time.Now().After(limit) || !backoff.Sleep(ctx, 100*time.Millisecond) {
			return errors.Join(fmt.Errorf("the run does not reach %s: %s, %s", what, terminal.StateWord(r.Msg.Run.State), r.Msg.Run.Message), ctx.Err())
		}
	}
}

// watch samples the orchestrator's memory until ctx ends.
func (b *hostile) watch(ctx context.Context, l *look) {
	for backoff.Sleep(ctx, 100*time.Millisecond) {
		l.under = append(l.under, b.memory())
	}
}

// call makes a person's calls until ctx ends.
func (b *hostile) call(ctx context.Context, l *look) {
	for backoff.Sleep(ctx, 200*time.Millisecond) {
		began := time.Now()
		if _, err := b.operators().ListRuns(ctx, authorized(b, &linktrialv1.ListRunsRequest{Limit: 1})); err == nil {
			l.calls = append(l.calls, time.Since(began))
		} else if ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "error: a person's call:", err)
		}
	}
}

// memory is the resident memory of the orchestrator in MiB, as the kernel has it (proc(5), status).
func (b *hostile) memory() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			n, _ := strconv.ParseFloat(f[1], 64)
			return n / 1024
		}
	}
	return 0
}
