package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"linktrial/agents/agent"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/driver"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/cmd/linktrial/trial"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/internal/faultdisk"
	"linktrial/internal/filelock"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/internal/wallclock"
	"linktrial/internal/yamldoc"
	"linktrial/lab/faults"
	"linktrial/lab/netns"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
)

// RehearsalAgents is the folder within a data folder where a rehearsal keeps the
// agents' state.
const RehearsalAgents = "agents/rehearsal"

// rehearsalLab is the name of this rehearsal's lab: no other process has it, so that
// rehearsals with data folders of their own can run at once.
func rehearsalLab() string { return fmt.Sprintf("rehearsal-%d", os.Getpid()) }

func newRehearse(s *setting.Settings) *cobra.Command {
	r := &rehearsal{s: s}
	cmd := &cobra.Command{
		Use:     "rehearse FILE",
		GroupID: setting.GroupTrial,
		Short:   "Run a plan on emulated radios on this machine: lab up, run, lab down",
		Long: `Rehearse runs a plan on emulated radios: it starts an orchestrator with a private
PostgreSQL (unless one answers at --orchestrator), brings up a node and an agent
for each role, runs the plan, prints the table, exports the results, and removes
everything that it has started. What a killed rehearsal leaves behind, the next one
removes. Rehearsals that run at once need a --data folder each.

A treatment that this machine cannot run is left out; the exit code is then 1, unless
the plan gives a reason for it with missing.

With --virtual the nodes run in guests whose clock jumps over every wait
(docs/virtual-time.md): a campaign of days takes minutes.

With --faults, faults of the apparatus are injected while the plan runs: those of a
schedule, or without end those that follow from a seed (docs/faults.md). Each is
printed, and listed in faults.jsonl beside the exported results. With --virtual the
same seed and plan give the same faults and the same journals.

With --real-path the nodes have plain interfaces with the rate of the plan's radio
in place of emulated radios, and agents know them by name alone, as in the field; faults
of the path to a radio exist there (docs/faults.md). The radio must be a made-up one.

With --runner docker the drivers run in containers of this machine's engine, as on
nodes that run images (docs/containers.md).`,
		Example: `  linktrial rehearse plans/quickstart.yaml
  linktrial rehearse plans/breedy-2015.yaml --virtual --jobs 2 --out results
  linktrial rehearse plans/quickstart.yaml --runner docker
  linktrial rehearse plans/quickstart.yaml --faults 42 --fault-interval 10s`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.file = args[0]
			return r.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.out, "out", "", "folder for the exported results (default: results/CAMPAIGN)")
	f.StringVar(&r.runner, "runner", agent.RunnerExec, "how drivers run: exec, as processes, or docker, as containers of this machine's engine")
	f.BoolVar(&r.virtual, "virtual", false, "run in virtual time, in guests (needs 'linktrial lab kernel' once)")
	f.BoolVar(&r.realPath, "real-path", false, "give the nodes plain interfaces that no emulator makes, in place of emulated radios (docs/faults.md)")
	f.IntVar(&r.jobs, "jobs", 0, "with --virtual: guests that run at a time (default: one for each processor)")
	f.BoolVar(&r.yes, "yes", false, "do not ask for confirmation of a run longer than a day")
	r.faults.register(f)
	cmd.MarkFlagsMutuallyExclusive("virtual", "runner")
	cmd.MarkFlagsMutuallyExclusive("virtual", "real-path")
	return cmd
}

// rehearsal is one run of the command and all that it started.
type rehearsal struct {
	s        *setting.Settings
	file     string
	out      string
	virtual  bool
	realPath bool
	runner   string // of the agents
	jobs     int
	yes      bool
	faults   faultFlags

	plan   *plan.Plan
	sheets []*runsheet.Sheet
	cat    *catalog.Catalog
	log    *slog.Logger // to a file; the terminal shows the trials

	base     string // of the orchestrator
	client   linktrialv1connect.OperatorServiceClient
	serve    *Orchestrator // nil where one was running
	lab      *netns.Lab
	agents   labAgents
	keys     []signature.PublicKey // that the agents trust
	campaign string
	notKept  error // why what an interrupted campaign has measured is not in the store

	schedule *faults.Schedule               // nil: no faults
	disks    map[radio.Role]*faultdisk.Disk // of the state folders; empty: no fault hits one

	clocks map[radio.Role]*wallclock.Offset // of the nodes; empty: no fault steps one

	databaseDisk *databaseDisk // nil: no fault fills it
	hold         hold          // of the orchestrator
}

// longRun is the estimated duration from which a rehearsal in real time asks for
// confirmation.
const longRun = 24 * time.Hour

func (r *rehearsal) run(ctx context.Context) (err error) {
	text, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	logs := filepath.Join(r.s.Data, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	unlock, err := lockRehearsal(r.s.Data)
	if err != nil {
		return err
	}
	defer unlock()
	logFile, err := os.Create(filepath.Join(logs, "rehearsal.log"))
	if err != nil {
		return err
	}
	defer logFile.Close()
	r.log = slog.New(slog.NewTextHandler(logFile, nil))

	defer func() {
		began := time.Now()
		r.down(ctx.Err() != nil)
		r.log.Info("rehearsal removed", "seconds", time.Since(began).Seconds())
		if ctx.Err() != nil {
			err = errors.New("interrupted; everything that was started has been removed, and what was measured is kept: linktrial results")
			if r.notKept != nil {
				err = fmt.Errorf("interrupted; everything that was started has been removed; what was measured could not be stored: %w", r.notKept)
			}
		}
	}()
	if r.virtual {
		return r.virtually(ctx, text, logFile)
	}
	if err := r.up(ctx, logFile); err != nil {
		return err
	}
	return r.trialsInLab(ctx, text)
}

// lockRehearsal keeps other rehearsals out of a data folder until unlock: they would
// share the log, the agents' state and the note of the campaign. The kernel drops the
// lock with the process, however that ends.
func lockRehearsal(data string) (unlock func(), err error) {
	path := filepath.Join(data, "rehearsal.lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := filelock.TryLock(f, filelock.Exclusive); err != nil {
		f.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, fmt.Errorf("another rehearsal uses the data folder %s: wait until it has ended, or choose another folder with --data", data)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { filelock.Release(f) }, nil
}

// prepare checks flags, plan and machine before anything is started, and returns the
// text of the plan.
func (r *rehearsal) prepare(ctx context.Context) ([]byte, error) {
	if r.runner != agent.RunnerExec && r.runner != agent.RunnerDocker {
		return nil, fmt.Errorf("--runner %q, expected %s or %s", r.runner, agent.RunnerExec, agent.RunnerDocker)
	}
	text, name, err := trial.ReadPlan(r.file)
	if err != nil {
		return nil, err
	}
	var problems yamldoc.Problems
	r.plan, r.sheets, err = trial.CompileText(ctx, r.s, name, text)
	switch {
	case errors.As(err, &problems):
		return nil, fmt.Errorf("the plan is refused:\n%w", err)
	case err != nil:
		return nil, err
	}
	if r.cat, err = r.s.LoadCatalog(); err != nil {
		return nil, err
	}
	if err := trial.Writable(cmp.Or(r.out, "results")); err != nil {
		return nil, err
	}
	if r.realPath {
		if err := checkRealPath(r.cat, r.sheets); err != nil {
			return nil, err
		}
	}
	if err := r.prepareFaults(); err != nil {
		return nil, err
	}
	if r.virtual {
		return text, nil
	}
	if err := netns.Possible(); err != nil {
		return nil, err
	}
	return text, r.confirm()
}

// trialsInLab is [rehearsal.trials], which ends early when the lab's emulator, an
// agent or the orchestrator ends so often that it is not started again: nothing could finish then.
func (r *rehearsal) trialsInLab(ctx context.Context, text []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.lab.Ended():
			cancel(r.lab.Failure())
		case err := <-r.failedProcess(ctx):
			cancel(err)
		case <-ctx.Done():
		}
	}()
	err := r.trials(ctx, text)
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// failedProcess gets why the orchestrator or an agent is not started again.
func (r *rehearsal) failedProcess(ctx context.Context) <-chan error {
	all := slices.Clone(r.agents)
	if r.serve != nil {
		all = append(all, r.serve.p)
	}
	return all.failed(ctx)
}

// confirm asks before a run that would take more than a day.
func (r *rehearsal) confirm() error {
	var total time.Duration
	for _, sh := range r.sheets {
		total += sheet.Total(sh)
	}
	if r.yes || total < longRun {
		return nil
	}
	long := fmt.Sprintf("plan %s would take about %s in real time", r.plan.Name, terminal.ForPeople(total.Seconds()))
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return fmt.Errorf("%s: add --virtual to run it in virtual time, or --yes to run it in real time", long)
	}
	fmt.Printf("%s; with --virtual it takes minutes. Start it in real time? [y/N] ", long)
	var answer string
	// An empty line is an error of Scanln, and means no.
	_, err := fmt.Scanln(&answer)
	if err != nil || answer != "y" && answer != "Y" && answer != "yes" {
		return errors.New("not started")
	}
	return nil
}

// orchestrator connects to the running orchestrator, or starts one.
func (r *rehearsal) orchestrator(ctx context.Context, log *os.File) error {
	r.base = r.s.Orchestrator
	running, err := client.Reachable(ctx, r.base)
	if err != nil {
		return client.Error(r.base, err)
	}
	if !running {
		if r.serve, err = r.startOrchestrator(ctx, log); err != nil {
			return err
		}
		r.base = r.serve.URL
	}
	r.client = client.New(r.base)
	return r.forgetEarlier(ctx)
}

// up starts orchestrator, lab and agents.
func (r *rehearsal) up(ctx context.Context, log *os.File) error {
	began := time.Now()
	waiting := terminal.NewWaiting(os.Stdout)
	defer waiting.Stop()
	// The leading agent configures the emulator for each run; the lab must have the nodes of all of them.
	first, radios := r.sheets[0].Cell, 0
	for _, sh := range r.sheets {
		n := 2 * len(sh.Topology.Stations)
		if sh.Topology.Second != nil {
			n++ // the lab has second radios where any run needs them
		}
		if n > radios {
			first, radios = sh.Cell, n
		}
	}
	cfg, err := r.labConfig(labFlags{name: rehearsalLab(), radio: first.Radio, topology: first.Topology})
	if err != nil {
		return err
	}
	waiting.Step("looking for what an earlier rehearsal has left behind")
	swept, err := sweepLabs(ctx, os.Stderr, netns.DefaultStateDir, cfg.Name)
	if err != nil {
		return err
	}
	if len(swept) > 0 {
		fmt.Printf("removed what an earlier rehearsal or lab has left behind: %s\n", strings.Join(swept, ", "))
	}
	waiting.Step("starting the orchestrator and its database")
	if err := r.orchestrator(ctx, log); err != nil {
		return err
	}
	if r.serve == nil {
		if r.schedule != nil {
			return fmt.Errorf("an orchestrator runs at %s, and faults would hit what others do there: give this rehearsal an orchestrator of its own (--data with another folder, and --orchestrator with a URL at which none answers)", r.base)
		}
		if err := r.namesAreFree(ctx, cfg.Network.Nodes); err != nil {
			return err
		}
	}
	waiting.Step("bringing up nodes and " + r.radios())
	cfg.Forward, cfg.Log = strings.TrimPrefix(r.base, "http://"), r.log
	if r.lab, err = netns.Up(ctx, cfg); err != nil {
		return err
	}
	state := filepath.Join(r.s.Data, RehearsalAgents)
	if err := forgetDisks(state); err != nil {
		return err
	}
	// The journals of an earlier rehearsal are in the store, or belong to a campaign that was just aborted.
	if err := errors.Join(os.RemoveAll(state), os.RemoveAll(filepath.Join(r.s.Data, secondAgents))); err != nil {
		return err
	}
	if r.keys, err = driver.SigningKeys(ctx, r.base); err != nil {
		return err
	}
	if r.runner == agent.RunnerDocker {
		// The run sheets have to name the images that this machine runs.
		if _, err := driver.ApproveImages(ctx, r.base, "", "rehearsed on this machine", r.log); err != nil {
			return err
		}
	}
	if err := errors.Join(r.mountDisks(state), r.giveClocks()); err != nil {
		return err
	}
	waiting.Step("starting the agents")
	if r.agents, err = startAgents(r.s, r.lab, state, r.keys, r.log, "--runner", r.runner); err != nil {
		return err
	}
	if err := r.waitForNodes(ctx, waiting); err != nil {
		return err
	}
	fmt.Printf("orchestrator, %s and %d agents are up after %.1f s (plan %s)\n", r.radios(), len(r.agents), time.Since(began).Seconds(), r.plan.Name)
	return nil
}

// labConfig returns the configuration of the rehearsal's lab.
func (r *rehearsal) labConfig(l labFlags) (netns.Config, error) {
	if r.realPath {
		return plainConfig(r.cat, l)
	}
	return labConfig(r.s, r.cat, l)
}

// radios names the nodes' radios.
func (r *rehearsal) radios() string {
	if r.realPath {
		return "plain interfaces"
	}
	return "emulated radio network"
}

func (r *rehearsal) marker() string { return filepath.Join(r.s.Data, "rehearsal.campaign") }

// forgetEarlier aborts the campaign of a rehearsal that was killed: its nodes are
// gone.
func (r *rehearsal) forgetEarlier(ctx context.Context) error {
	id, err := os.ReadFile(r.marker())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = r.client.AbortCampaign(ctx, connect.NewRequest(&linktrialv1.AbortCampaignRequest{
		CampaignId: string(id), Reason: "the rehearsal was killed"}))
	if err != nil && connect.CodeOf(err) != connect.CodeNotFound && connect.CodeOf(err) != connect.CodeFailedPrecondition {
		return client.Error(r.base, err)
	}
	return os.Remove(r.marker())
}

// namesLimit is how long the nodes of a rehearsal that has just ended may still count
// as connected.
const namesLimit = 5 * time.Second

// namesAreFree returns an error where an orchestrator that was running has connected
// nodes of the names that the rehearsal's nodes will have: its trials would run there.
func (r *rehearsal) namesAreFree(ctx context.Context, nodes []radio.Node) error {
	for deadline := time.Now().Add(namesLimit); ; {
		res, err := r.client.ListNodes(ctx, connect.NewRequest(&linktrialv1.ListNodesRequest{}))
		if err != nil {
			return client.Error(r.base, err)
		}
		taken := ""
		for _, n := range res.Msg.Nodes {
			if n.Connected && slices.ContainsFunc(nodes, func(v radio.Node) bool { return string(v.Role) == n.Name }) {
				taken = n.Name
			}
		}
		switch {
		case taken == "":
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("the orchestrator at %s has a connected node %q, of another rehearsal, a lab or a laptop: end that one, or give this rehearsal an orchestrator of its own (--data with another folder, and --orchestrator with a URL at which none answers)", r.base, taken)
		case !backoff.Sleep(ctx, 100*time.Millisecond):
			return ctx.Err()
		}
	}
}

func (r *rehearsal) waitForNodes(ctx context.Context, waiting *terminal.Waiting) error {
	deadline := time.Now().Add(60 * time.Second)
	// Nodes are there within a moment, or something is wrong that others work on.
	retry := backoff.Backoff{Min: 20 * time.Millisecond, Max: 500 * time.Millisecond}
	for {
		res, err := r.client.ListNodes(ctx, connect.NewRequest(&linktrialv1.ListNodesRequest{}))
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		connected := map[string]bool{}
		if err == nil {
			for _, n := range res.Msg.Nodes {
				connected[n.Name] = n.Connected
			}
		}
		var missing []string
		for _, n := range r.lab.State.Nodes {
			if !connected[string(n.Role)] {
				missing = append(missing, string(n.Role))
			}
		}
		if len(missing) == 0 {
			return nil
		}
		waiting.Step("waiting for nodes to connect: " + strings.Join(missing, ", "))
		if time.Now().After(deadline) {
			return fmt.Errorf("agent %s does not connect: %s", missing[0], lastLine(filepath.Join(r.lab.Folder(), missing[0]+".log")))
		}
		if !retry.Wait(ctx) {
			return ctx.Err()
		}
	}
}

// trials runs the plan, and prints and exports its results.
func (r *rehearsal) trials(ctx context.Context, text []byte) error {
	var err error
	if r.campaign, err = trial.Start(ctx, r.base, r.client, r.file, text, "", false); err != nil {
		return err
	}
	if err := os.WriteFile(r.marker(), []byte(r.campaign), 0o644); err != nil {
		return err
	}
	// What follows only asks, and the campaign goes on whoever is down. Who injects faults
	// asks to learn just that, and does not wait.
	asking := ctx
	ctx = client.Waiting(ctx, client.NewOutage(r.base, func(line string) { fmt.Fprintln(os.Stderr, line) }))
	missing, err := trial.FindMissing(ctx, r.base, r.campaign, text)
	if err != nil {
		return err
	}
	missing.Say()
	progress := terminal.NewProgress(os.Stdout)
	campaign, err := r.startFaults(asking, progress)
	if err != nil {
		return err
	}
	err = trial.FollowOn(ctx, r.base, r.client, r.campaign, progress)
	if err := errors.Join(err, campaign.end()); err != nil {
		return err
	}
	if err := os.Remove(r.marker()); err != nil {
		return err
	}
	if err := r.present(ctx); err != nil {
		return err
	}
	return errors.Join(campaign.summary(ctx), missing.Err())
}

// down removes everything that the rehearsal has started. After an interrupt it first
// aborts the campaign, so that the store does not keep it as running.
func (r *rehearsal) down(interrupted bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if interrupted && r.campaign != "" {
		_, err := r.client.AbortCampaign(ctx, connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: r.campaign, Reason: "interrupted"}))
		switch {
		case err == nil:
			r.drain(ctx)
			if err := os.Remove(r.marker()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				r.log.Error("marker of the campaign could not be removed", "error", err)
			}
		case connect.CodeOf(err) != connect.CodeFailedPrecondition: // it had ended already
			r.log.Error("campaign could not be aborted", "error", err)
		}
	}
	r.agents.stop()
	r.unmountDisks()
	if r.lab != nil {
		if err := r.lab.Down(ctx); err != nil {
			r.log.Error("lab could not be removed", "error", err)
			fmt.Fprintln(os.Stderr, "linktrial: the lab could not be removed:", err)
		}
	}
	if r.serve != nil {
		r.serve.Stop(ctx)
	}
}

// drain waits up to 5 s for the agents to deliver the end of the aborted trial.
func (r *rehearsal) drain(ctx context.Context) {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		res, err := r.client.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{CampaignId: r.campaign, Limit: 10_000}))
		if err != nil {
			return
		}
		open := false
		for _, run := range res.Msg.Runs {
			open = open || !terminal.Over(run.State)
		}
		if !open {
			return
		}
	}
}
