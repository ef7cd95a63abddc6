package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/lab"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/cmd/linktrial/trial"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/security/signing"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/synthetic"
)

// The campaign of the section large: 100 000 trials, each with so many samples.
var (
	largeRuns    = 250
	largeSamples = 100
	largeKeep    bool
)

const (
	largeIterations = 100
	largeTreatments = 4
	largeCampaign   = "large"
)

// largePlan makes as many trials as the campaign in the store has.
const largePlan = `name: bench-large
radio: reference-link
topology: vip-lot
size: 64 KiB
treatments:
  - {name: a, protocol: tcp, options: {congestion: cubic, mss: 1000 B}}
  - {name: b, protocol: tcp, options: {congestion: cubic, mss: 1100 B}}
  - {name: c, protocol: tcp, options: {congestion: cubic, mss: 1200 B}}
  - {name: d, protocol: tcp, options: {congestion: cubic, mss: 1300 B}}
sweep: [{name: run, set: processing_delay, values: [%s]}]
iterations: %d
order: random
seed: 1
`

// benchLarge measures what the largest campaign costs, in time and in the memory of the
// orchestrator, which is a process of its own.
func benchLarge(ctx context.Context, s *setting.Settings) error {
	if largeKeep {
		return (&largeBench{s: s, data: s.Data}).fill(ctx)
	}
	dir, remove, err := folder("large")
	if err != nil {
		return err
	}
	defer remove()
	b := &largeBench{s: s, dir: dir, data: filepath.Join(dir, "data"), http: client.HTTP()}
	defer b.http.CloseIdleConnections()
	if err := b.fill(ctx); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "serve.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	// The time of the processor says more than the other one where the machine is busy.
	fmt.Printf("%-42s %10s %12s %12s %12s\n", "WHAT", "TIME s", "PROCESSOR s", "PEAK MiB", "ANSWER MiB")
	began := time.Now()
	if b.server, err = lab.StartOrchestrator(ctx, s, b.data, log, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	b.print("orchestrator starts", time.Since(began), b.processor(), b.peak(), 0)
	err = errors.Join(b.measure(ctx), b.archive(ctx))
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	b.server.Stop(limited)
	if err != nil {
		return err
	}
	return b.restore(ctx)
}

type largeBench struct {
	s         *setting.Settings
	dir, data string
	server    *lab.Orchestrator
	http      *http.Client
}

// fill stores the campaign in the database of a data folder.
func (b *largeBench) fill(ctx context.Context) error {
	shape := synthetic.Shape{ID: largeCampaign, Runs: largeRuns, Iterations: largeIterations, Treatments: largeTreatments, Samples: largeSamples}
	began := time.Now()
	db, err := postgres.Start(ctx, postgres.Config{DataDir: b.data})
	if err != nil {
		return err
	}
	defer stop(ctx, db)
	st, err := store.Open(ctx, db.URL(), nil)
	if err != nil {
		return err
	}
	st.Close()
	conn, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	show := terminal.NewLateStages(os.Stderr, 2*time.Second)
	shape.Stored = func(share float64) { show.Stage("storing the campaign", share) }
	shape.Stored(0)
	err = synthetic.Fill(ctx, conn, shape)
	show.Finish()
	if err != nil {
		return err
	}
	size, err := diskUsed(b.data)
	fmt.Printf("\nA campaign of %d trials in %d runs and more than %d million samples (stored in %.0f s, %.0f MiB on disk, %s)\n", shape.Trials(), shape.Runs, shape.Trials()*shape.Samples/1_000_000,
		time.Since(began).Seconds(), size, unit.Moment(began))
	return err
}

func (b *largeBench) print(what string, took time.Duration, processor, peak, answer float64) {
	size := ""
	if answer > 0 {
		size = fmt.Sprintf("%.1f", answer)
	}
	fmt.Printf("%-42s %10.2f %12.2f %12.0f %12s\n", what, took.Seconds(), processor, peak, size)
}

// processor returns the time that orchestrator and database have had of processors, in
// seconds. A connection's time at the database goes to its parent when it ends.
func (b *largeBench) processor() float64 {
	sum := processorSeconds(b.server.PID())
	for _, pid := range below(b.server.PID()) {
		sum += processorSeconds(pid)
	}
	return sum
}

// peak returns the most memory of the orchestrator since [largeBench.forget], in MiB.
func (b *largeBench) peak() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.server.PID()))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			n, _ := strconv.ParseFloat(f[1], 64)
			return n / 1024
		}
	}
	return 0
}

// forget makes the memory of now the most that there was (proc(5), clear_refs).
func (b *largeBench) forget() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", b.server.PID()), []byte("5"), 0)
}

// step measures one call; its answer's size is in bytes. What cannot be done is said in the table.
func (b *largeBench) step(ctx context.Context, what string, f func(context.Context) (size int, err error)) error {
	if err := b.forget(); err != nil {
		return err
	}
	began, before := time.Now(), b.processor()
	size, err := f(ctx)
	took := time.Since(began)
	b.print(what, took, max(0, b.processor()-before), b.peak(), float64(size)/(1<<20))
	if err != nil {
		if ctx.Err() != nil || b.server.PID() == 0 {
			return fmt.Errorf("%s: %w", what, err)
		}
		fmt.Printf("    %v\n", client.Error(b.server.URL, err))
	}
	return nil
}

type largeStep struct {
	what string
	call func(context.Context) (int, error)
}

func (b *largeBench) measure(ctx context.Context) error {
	for _, s := range append(b.planSteps(), append(b.pageSteps(), b.exportSteps()...)...) {
		if err := b.step(ctx, s.what, s.call); err != nil {
			return err
		}
	}
	return nil
}

// plan is the text of the plan with so many iterations.
func (b *largeBench) plan(iterations int) []byte {
	values := make([]string, largeRuns)
	for i := range values {
		values[i] = strconv.Itoa(i+1) + "ms"
	}
	return fmt.Appendf(nil, largePlan, strings.Join(values, ", "), iterations)
}

func (b *largeBench) planSteps() []largeStep {
	c := client.New(b.server.URL)
	var started string
	return []largeStep{
		{"plan out of bounds is refused", func(ctx context.Context) (int, error) {
			res, err := c.CheckPlan(ctx, connect.NewRequest(&linktrialv1.CheckPlanRequest{File: "bench", Text: b.plan(10_000)}))
			if err == nil && len(res.Msg.Problems) != 1 {
				err = fmt.Errorf("%d problems, expected 1", len(res.Msg.Problems))
			}
			return 0, err
		}},
		{"plan check", func(ctx context.Context) (int, error) {
			res, err := c.CheckPlan(ctx, connect.NewRequest(&linktrialv1.CheckPlanRequest{File: "bench", Text: b.plan(largeIterations)}))
			if err == nil {
				err = trial.Refused("bench", res.Msg.Problems)
			}
			return 0, err
		}},
		{"plan explain", func(ctx context.Context) (int, error) {
			res, err := c.ExplainPlan(ctx, connect.NewRequest(&linktrialv1.ExplainPlanRequest{File: "bench", Text: b.plan(largeIterations)}))
			size, err := sized(res, err)
			return size, err
		}},
		{"start, until its nodes have the first run", func(ctx context.Context) (int, error) {
			var err error
			started, err = b.start(ctx, c)
			return 0, err
		}},
		{"live view of it, first state", func(ctx context.Context) (int, error) { return b.watch(ctx, c, started, largeRuns) }},
		{"abort of it", func(ctx context.Context) (int, error) {
			_, err := c.AbortCampaign(ctx, connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: started, Reason: "measured"}))
			return 0, err
		}},
		{"live view of the campaign that has ended", func(ctx context.Context) (int, error) { return b.watch(ctx, c, largeCampaign, 0) }},
	}
}

// start starts the plan on nodes that do nothing, and blocks until they have its first run.
func (b *largeBench) start(ctx context.Context, c linktrialv1connect.OperatorServiceClient) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	arrived := newArrivals()
	agents := &agentsBench{s: b.s, server: b.server, http: b.http}
	for _, role := range radio.Roles {
		f, err := agents.watcher(role, arrived)
		if err != nil {
			return "", err
		}
		running.Go(func() { f(ctx) })
	}
	if err := agents.awaitConnected(ctx, len(radio.Roles), nil); err != nil {
		return "", err
	}
	began := time.Now()
	res, err := c.StartPlan(ctx, connect.NewRequest(&linktrialv1.StartPlanRequest{File: "bench", Text: b.plan(largeIterations)}))
	if err != nil {
		return "", err
	}
	if err := trial.Refused("bench", res.Msg.Problems); err != nil {
		return "", err
	}
	answered := time.Since(began)
	last, err := arrived.reached(ctx, res.Msg.RunIds[0], len(radio.Roles))
	fmt.Printf("    start: answer after %.2f s, run at its nodes after %.2f s\n", answered.Seconds(), last.Sub(began).Seconds())
	return res.Msg.CampaignId, err
}

// watch reads the live view until its end, or until it has told of so many runs.
func (b *largeBench) watch(ctx context.Context, c linktrialv1connect.OperatorServiceClient, campaign string, runs int) (size int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.Watch(ctx, connect.NewRequest(&linktrialv1.WatchRequest{CampaignId: campaign}))
	if err != nil {
		return 0, err
	}
	defer func() { _ = stream.Close() }()
	seen := map[string]bool{}
	for stream.Receive() {
		m := stream.Msg()
		n, _ := sized(connect.NewResponse(m), nil)
		size += n
		if r := m.GetRun(); r != nil {
			if seen[r.Id] = true; runs > 0 && len(seen) == runs {
				return size, nil
			}
		}
	}
	return size, stream.Err()
}

func (b *largeBench) pageSteps() []largeStep {
	r := linktrialv1connect.NewResultServiceClient(b.http, b.server.URL)
	o := client.New(b.server.URL)
	run := largeCampaign + "-7"
	summary := func(points bool, ids ...string) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			res, err := r.Summarize(ctx, connect.NewRequest(&linktrialv1.SummarizeRequest{Ids: ids, Points: points}))
			return sized(res, err)
		}
	}
	return []largeStep{
		{"list of campaigns", func(ctx context.Context) (int, error) {
			res, err := r.ListCampaigns(ctx, connect.NewRequest(&linktrialv1.ListCampaignsRequest{}))
			return sized(res, err)
		}},
		{"list of the campaign's runs", func(ctx context.Context) (int, error) {
			res, err := o.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{CampaignId: largeCampaign, Limit: 10_000}))
			return sized(res, err)
		}},
		{"results page, first time", summary(false, largeCampaign)},
		{"results page, again", summary(false, largeCampaign)},
		{"results page with every attempt", summary(true, largeCampaign)},
		{"results page of one run", summary(true, run)},
		{"curves over an axis", func(ctx context.Context) (int, error) {
			res, err := r.Sweep(ctx, connect.NewRequest(&linktrialv1.SweepRequest{CampaignId: largeCampaign}))
			return sized(res, err)
		}},
		{"series of an attempt", func(ctx context.Context) (int, error) {
			res, err := r.Series(ctx, connect.NewRequest(&linktrialv1.SeriesRequest{RunId: run, Trial: 5, MaxPoints: 1500}))
			return sized(res, err)
		}},
		{"series of an iteration", func(ctx context.Context) (int, error) {
			res, err := r.Series(ctx, connect.NewRequest(&linktrialv1.SeriesRequest{RunId: run, Iteration: 3}))
			return sized(res, err)
		}},
		{"all of an attempt", func(ctx context.Context) (int, error) {
			res, err := r.GetAttempt(ctx, connect.NewRequest(&linktrialv1.GetAttemptRequest{RunId: run, Trial: 5}))
			return sized(res, err)
		}},
		{"a run with every attempt", func(ctx context.Context) (int, error) {
			res, err := o.GetRun(ctx, connect.NewRequest(&linktrialv1.GetRunRequest{RunId: run}))
			return sized(res, err)
		}},
		{"metrics", func(ctx context.Context) (int, error) {
			_, err := (&agentsBench{server: b.server, http: b.http}).metrics(ctx)
			return 0, err
		}},
	}
}

// exportSteps are all files that the command line writes, by itself: its memory counts too.
func (b *largeBench) exportSteps() (out []largeStep) {
	for _, f := range render.Formats() {
		if f.Of != render.OfAll && f.Of != render.OfSweeps { // the campaign has nothing of the kind
			continue
		}
		format := f.Name
		out = append(out, largeStep{"export " + format, func(ctx context.Context) (int, error) {
			path := filepath.Join(b.dir, "export")
			defer func() { _ = os.Remove(path) }()
			f, err := os.Create(path)
			if err != nil {
				return 0, err
			}
			defer f.Close()
			peak, err := b.command(ctx, f, "results", largeCampaign, "--format", format)
			if err != nil {
				return 0, err
			}
			if peak > 200 {
				fmt.Printf("    the command's own peak: %.0f MiB\n", peak)
			}
			info, err := f.Stat()
			if err != nil {
				return 0, err
			}
			return int(info.Size()), nil
		}})
	}
	return out
}

// command runs a command of the built program and returns the most memory that it had, in MiB.
func (b *largeBench) command(ctx context.Context, out *os.File, args ...string) (peak float64, err error) {
	var said strings.Builder
	cmd := exec.CommandContext(ctx, b.s.Program, append(args, "--orchestrator", b.server.URL)...)
	cmd.Stdout, cmd.Stderr = out, &said
	if err := cmd.Run(); err != nil {
		return 0, errors.New(cmp.Or(strings.TrimSpace(said.String()), err.Error()))
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, errors.New("the memory of a command is not known")
	}
	return float64(usage.Maxrss) / 1024, nil
}

// archive writes a backup while the orchestrator runs.
func (b *largeBench) archive(ctx context.Context) error {
	path := filepath.Join(b.dir, "backup.tar.gz")
	return b.step(ctx, "backup", func(ctx context.Context) (int, error) {
		peak, err := b.command(ctx, nil, "--data", b.data, "backup", "create", "--out", path)
		if err != nil {
			return 0, err
		}
		fmt.Printf("    the command's own peak: %.0f MiB\n", peak)
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		return int(info.Size()), nil
	})
}

// restore restores the backup, once the data that it was made of has been removed: there
// may not be room for both.
func (b *largeBench) restore(ctx context.Context) error {
	path := filepath.Join(b.dir, "backup.tar.gz")
	if _, err := os.Stat(path); err != nil {
		return err
	}
	keys := filepath.Join(b.dir, "trusted-keys")
	if err := os.Rename(filepath.Join(signing.Dir(b.data), signing.PublicFile), keys); err != nil {
		return err
	}
	if err := os.RemoveAll(b.data); err != nil {
		return err
	}
	began := time.Now()
	peak, err := b.command(ctx, nil, "--data", b.data, "backup", "restore", path, "--trusted-keys", keys)
	if err != nil {
		return err
	}
	fmt.Printf("%-42s %10.2f %12s %12.0f (the command's)\n", "restore", time.Since(began).Seconds(), "", peak)
	return nil
}

// sized returns the size of an answer in bytes.
func sized[T any](res *connect.Response[T], err error) (int, error) {
	if err != nil {
		return 0, err
	}
	m, ok := any(res.Msg).(proto.Message)
	if !ok {
		return 0, errors.New("an answer is no message")
	}
	return proto.Size(m), nil
}
