package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"linktrial/agents/agent"
	"linktrial/agents/session"
	agenttrust "linktrial/agents/trust"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/lab"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/cmd/linktrial/trial"
	"linktrial/internal/backoff"
	"linktrial/internal/driverdigest"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/internal/stats"
	"linktrial/internal/vitals"
)

// idleAgents is the number of agents that the bench connects.
var idleAgents = 300

const (
	agentsWindow = 60 * time.Second // over which costs are measured
	agentsStarts = 5                // of runs
)

const agentsPlan = `name: bench-agents
radio: prc-117g-anw2c
topology: vip-lot
size: 16 KiB
treatments:
  - {name: tcp-cubic, label: TCP, protocol: tcp, options: {congestion: cubic}}
iterations: 1
seed: 1
`

// benchAgents measures the cost of idle agents for their orchestrator, which is a
// separate process, and how long a started run takes to reach its nodes.
func benchAgents(ctx context.Context, s *setting.Settings) error {
	fmt.Printf("\n%d idle agents, each with a connection of its own over the loopback\n", idleAgents)
	dir, remove, err := folder("agents")
	if err != nil {
		return err
	}
	defer remove()
	b := &agentsBench{s: s, dir: dir, http: client.HTTP()}
	defer b.http.CloseIdleConnections()
	log, err := os.Create(filepath.Join(dir, "serve.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	if b.server, err = lab.StartOrchestrator(ctx, s, filepath.Join(dir, "data"), log, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		b.server.Stop(limited)
	}()
	return b.measure(ctx)
}

type agentsBench struct {
	s      *setting.Settings
	dir    string
	server *lab.Orchestrator
	http   *http.Client // shared: each client would leave a connection behind
}

func (b *agentsBench) measure(ctx context.Context) error {
	alone, err := b.cost()
	if err != nil {
		return err
	}
	actx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	began := time.Now()
	arrived := newArrivals()
	if err := b.connect(actx, &running, arrived); err != nil {
		return err
	}
	connected := time.Since(began)
	if !backoff.Sleep(ctx, 5*time.Second) { // the work after registering is done
		return ctx.Err()
	}
	before, err := b.cost()
	if err != nil {
		return err
	}
	start := time.Now()
	if !backoff.Sleep(ctx, agentsWindow) {
		return ctx.Err()
	}
	after, err := b.cost()
	if err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	answered, reach, err := b.starts(ctx, arrived)
	if err != nil {
		return err
	}
	return terminal.Columns("METRIC\tVALUE", func(w io.Writer) {
		fmt.Fprintf(w, "all connected after\t%.1f s\n", connected.Seconds())
		fmt.Fprintf(w, "orchestrator's memory without agents\t%.1f MiB\n", alone.memory)
		fmt.Fprintf(w, "orchestrator's memory with them\t%.1f MiB\n", after.memory)
		fmt.Fprintf(w, "orchestrator's processor time, share of one processor over %.0f s\t%.2f %%\n", seconds, 100*(after.processor-before.processor)/seconds)
		fmt.Fprintf(w, "database's memory, shared pages counted once\t%.1f MiB\n", after.databaseMemory)
		fmt.Fprintf(w, "database's processor time, share of one processor\t%.2f %%\n", 100*(after.database-before.database)/seconds)
		fmt.Fprintf(w, "calls\t%.1f a second\n", (after.calls-before.calls)/seconds)
		fmt.Fprintf(w, "start of a run to its answer, median\t%.0f ms\n", stats.Median(milliseconds(answered)))
		fmt.Fprintf(w, "start of a run to its three nodes, median of %d\t%.0f ms\n", len(reach), stats.Median(milliseconds(reach)))
		fmt.Fprintf(w, "start of a run to its three nodes, worst\t%.0f ms\n", ms(slices.Max(reach)))
	})
}

// connect starts the agents, which run until ctx ends, and blocks until all of them
// are connected, for three minutes at most.
func (b *agentsBench) connect(ctx context.Context, running *sync.WaitGroup, arrived *arrivals) error {
	failed := make(chan error, idleAgents)
	// Three nodes could run the plan; they note their assignments and do nothing.
	nodes := radio.Roles
	for _, role := range nodes {
		f, err := b.watcher(role, arrived)
		if err != nil {
			return err
		}
		running.Go(func() { f(ctx) })
	}
	empty := filepath.Join(b.dir, "no-drivers")
	if err := os.MkdirAll(empty, 0o755); err != nil {
		return err
	}
	for i := range idleAgents - len(nodes) {
		// No relays: they need no driver, so the orchestrator could choose one for the plan.
		cfg := agent.Config{Name: fmt.Sprintf("idle-%04d", i), Role: []radio.Role{radio.RoleClient, radio.RoleServer}[i%2], Orchestrator: b.server.URL, StateDir: filepath.Join(b.dir, "agents", strconv.Itoa(i)), DriversDir: empty,
			Device: "lo", RadioAddress: "127.0.0.1", Trust: agenttrust.Config{Pin: true}, Version: b.s.Version}
		running.Go(func() {
			if err := agent.Run(ctx, cfg); err != nil {
				failed <- err
			}
		})
	}
	return b.awaitConnected(ctx, idleAgents, failed)
}

// awaitConnected blocks until so many nodes are connected, for three minutes at most, or
// until one has failed; failed can be nil.
func (b *agentsBench) awaitConnected(ctx context.Context, nodes int, failed <-chan error) error {
	for end := time.Now().Add(3 * time.Minute); ; {
		m, err := b.metrics(ctx)
		if err != nil {
			return err
		}
		if int(m["linktrial_nodes_connected"]) >= nodes {
			return nil
		}
		select {
		case err := <-failed:
			return err
		default:
		}
		if time.Now().After(end) || !backoff.Sleep(ctx, 100*time.Millisecond) {
			return errors.Join(fmt.Errorf("only %.0f of %d agents connected", m["linktrial_nodes_connected"], nodes), ctx.Err())
		}
	}
}

// arrivals records when each node has received which run.
type arrivals struct {
	mu      sync.Mutex
	at      map[string]map[radio.Role]time.Time // by run
	changed chan struct{}
}

func newArrivals() *arrivals {
	return &arrivals{at: map[string]map[radio.Role]time.Time{}, changed: make(chan struct{}, 1)}
}

func (t *arrivals) note(role radio.Role, list []*linktrialv1.SignedAssignment) {
	t.mu.Lock()
	for _, s := range list {
		a := new(linktrialv1.Assignment)
		if proto.Unmarshal(s.Assignment, a) != nil || a.RunId == "" {
			continue
		}
		if t.at[a.RunId] == nil {
			t.at[a.RunId] = map[radio.Role]time.Time{}
		}
		if t.at[a.RunId][role].IsZero() {
			t.at[a.RunId][role] = time.Now()
		}
	}
	t.mu.Unlock()
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// reached blocks until n nodes have received a run, for a minute at most, and returns
// when the last one did.
func (t *arrivals) reached(ctx context.Context, run string, n int) (last time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		t.mu.Lock()
		count := len(t.at[run])
		for _, at := range t.at[run] {
			if at.After(last) {
				last = at
			}
		}
		t.mu.Unlock()
		if count >= n {
			return last, nil
		}
		select {
		case <-t.changed:
		case <-ctx.Done():
			return last, fmt.Errorf("run %s has reached %d of %d nodes: %w", run, count, n, ctx.Err())
		}
	}
}

// watcher returns a node that could run the plan, and only records its assignments.
func (b *agentsBench) watcher(role radio.Role, t *arrivals) (func(context.Context), error) {
	cat, err := b.s.LoadCatalog()
	if err != nil {
		return nil, err
	}
	m := cat.Manifest("tcp")
	if m == nil {
		return nil, fmt.Errorf("no driver tcp in %s", b.s.Drivers)
	}
	f, err := driverdigest.OfFolder(cat.DriverDir("tcp"))
	if err != nil {
		return nil, err
	}
	name, incarnation := "node-"+string(role), "bench"
	s, err := session.New(session.Config{URL: b.server.URL, Name: name, Incarnation: incarnation, Version: b.s.Version})
	if err != nil {
		return nil, err
	}
	// The nodes of a run are of one lab: all have the same key.
	lab := signature.SignLab(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)),
		signature.LabStatement{Kind: signature.LabNode, Subject: name, Detail: incarnation, Role: string(role), Address: radio.Addresses[role]})
	register := func() *linktrialv1.RegisterRequest {
		return &linktrialv1.RegisterRequest{Role: string(role), Version: b.s.Version, Emulated: true, LabKey: lab.Key, LabSignature: lab.Signature, RadioAddress: radio.Addresses[role], DiskFreeBytes: 1 << 30,
			Drivers: []*linktrialv1.DriverState{{Name: "tcp", Version: m.Version, Digest: string(f.Digest)}}}
	}
	return func(ctx context.Context) {
		defer s.Close()
		s.Run(ctx, register, func(r session.Answer) bool {
			t.note(role, r.Assignments)
			return false
		})
	}, nil
}

// starts starts runs and measures the time until each call is answered, and until the
// last of the three nodes has received the run.
func (b *agentsBench) starts(ctx context.Context, t *arrivals) (answered, reached []time.Duration, err error) {
	c := client.New(b.server.URL)
	for range agentsStarts {
		began := time.Now()
		res, err := c.StartPlan(ctx, connect.NewRequest(&linktrialv1.StartPlanRequest{File: "bench", Text: []byte(agentsPlan)}))
		if err != nil {
			return nil, nil, client.Error(b.server.URL, err)
		}
		answered = append(answered, time.Since(began))
		if err := trial.Refused("bench", res.Msg.Problems); err != nil {
			return nil, nil, err
		}
		last, err := t.reached(ctx, res.Msg.RunIds[0], 3)
		if err != nil {
			return nil, nil, err
		}
		reached = append(reached, last.Sub(began))
		if _, err := c.AbortCampaign(ctx, connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: res.Msg.CampaignId, Reason: "measured"})); err != nil {
			return nil, nil, client.Error(b.server.URL, err)
		}
		for open := true; open; { // these nodes do not obey; the orchestrator waits for them for a while
			list, err := c.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{CampaignId: res.Msg.CampaignId}))
			if err != nil {
				return nil, nil, client.Error(b.server.URL, err)
			}
			open = slices.ContainsFunc(list.Msg.Runs, func(r *linktrialv1.Run) bool { return !terminal.Over(r.State) })
			if open && !backoff.Sleep(ctx, 100*time.Millisecond) {
				return nil, nil, ctx.Err()
			}
		}
	}
	return answered, reached, nil
}

// serverCost is the memory of orchestrator and database in MiB, and their processor
// time since their start in seconds.
type serverCost struct {
	memory, processor, databaseMemory, database, calls float64
}

func (b *agentsBench) cost() (serverCost, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m, err := b.metrics(ctx)
	if err != nil {
		return serverCost{}, err
	}
	c := serverCost{memory: m["process_resident_memory_bytes"] / (1 << 20), processor: m["process_cpu_seconds_total"], calls: m["linktrial_calls_total"]}
	for _, pid := range below(b.server.PID()) {
		c.databaseMemory += mebibytes(vitals.Memory(pid))
		c.database += processorSeconds(pid)
	}
	return c, nil
}

// metrics returns the orchestrator's metrics, each as the sum of its samples.
func (b *agentsBench) metrics(ctx context.Context) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := b.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	out := map[string]float64{}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		if v, err := strconv.ParseFloat(value[strings.LastIndexByte(value, ' ')+1:], 64); err == nil {
			out[name] += v
		}
	}
	return out, lines.Err()
}

// below returns the descendants of a process: those of the database.
func below(pid int) []int {
	parents := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if p, err := strconv.Atoi(e.Name()); err == nil {
			if f := statFields(p); len(f) > 1 {
				parents[p], _ = strconv.Atoi(f[1])
			}
		}
	}
	var out []int
	for p := range parents {
		for q := parents[p]; q > 1; q = parents[q] {
			if q == pid {
				out = append(out, p)
				break
			}
		}
	}
	return out
}

// statFields returns the fields of proc(5) stat from the third on: state, parent, …
func statFields(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil // it has gone
	}
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
}

// processorSeconds returns the processor time of a process and of its children that
// have ended, from the kernel's ticks of 10 ms (proc(5) stat, fields 14 to 17).
func processorSeconds(pid int) float64 {
	f := statFields(pid)
	if len(f) < 15 {
		return 0
	}
	ticks := 0.0
	for _, text := range f[11:15] {
		n, _ := strconv.ParseFloat(text, 64)
		ticks += n
	}
	return ticks / 100
}
