package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/pflag"

	"linktrial/agents/agent"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/cmd/linktrial/trial"
	"linktrial/executor/runsheet"
	"linktrial/internal/atomicfile"
	"linktrial/internal/faultdisk"
	"linktrial/internal/faultlog"
	"linktrial/internal/inputfile"
	"linktrial/internal/radio"
	"linktrial/internal/service"
	"linktrial/internal/wallclock"
	"linktrial/internal/yamldoc"
	"linktrial/lab/faults"
	"linktrial/orchestrator/postgres"
)

// faultFlags are the flags of a campaign of faults.
type faultFlags struct {
	source string // a file or a seed; empty: no faults
	every  time.Duration
	kinds  []string
	set    *pflag.FlagSet
}

func (f *faultFlags) register(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.source, "faults", "", "inject faults while the plan runs: a schedule FILE, or a number as the SEED of faults without end (docs/faults.md)")
	set.DurationVar(&f.every, "fault-interval", faults.DefaultEvery, "with a seed: mean interval between the beginnings of two faults")
	set.StringSliceVar(&f.kinds, "fault-kinds", nil, "with a seed: kinds of faults to draw, such as kill or kill:agent (default: all)")
}

// schedule reads the flags; nil: no faults.
func (f *faultFlags) schedule(nodes faults.Nodes) (*faults.Schedule, error) {
	seed, err := strconv.ParseUint(f.source, 10, 64)
	seeded := f.source != "" && err == nil
	for _, flag := range []string{"fault-interval", "fault-kinds"} {
		if f.set.Changed(flag) && !seeded {
			return nil, fmt.Errorf("--%s is for faults from a seed (--faults 42); a schedule has it under random", flag)
		}
	}
	if f.source == "" {
		if f.set.Changed("faults") {
			return nil, errors.New("--faults is empty, expected a schedule file or a seed")
		}
		return nil, nil
	}
	if !seeded {
		text, err := inputfile.Read(f.source, yamldoc.MaxText)
		if err != nil {
			return nil, fmt.Errorf("schedule of faults: %w", err)
		}
		s, err := faults.Parse(f.source, text, nodes)
		if err != nil {
			return nil, fmt.Errorf("the schedule of faults is refused:\n%w", err)
		}
		return s, nil
	}
	if f.every < faults.MinEvery || f.every > faults.MaxEvery {
		return nil, fmt.Errorf("--fault-interval %s, expected %s to %s", f.every, faults.MinEvery, faults.MaxEvery)
	}
	kinds, err := nodes.Parse(f.kinds)
	if err != nil {
		return nil, fmt.Errorf("--fault-kinds: %w", err)
	}
	return &faults.Schedule{Random: faults.NewRandom(seed, f.every, kinds, nodes)}, nil
}

// prepareFaults reads the flags before anything is started.
func (r *rehearsal) prepareFaults() error {
	var err error
	r.schedule, err = r.faults.schedule(nodesOf(r.sheets, r.place()))
	switch {
	case err != nil || r.schedule == nil:
		return err
	case r.runner != agent.RunnerExec:
		return fmt.Errorf("--faults signals the processes of drivers, which a container engine holds with --runner %s: remove one of them", r.runner)
	}
	return nil
}

// place is what the rehearsal's nodes are.
func (r *rehearsal) place() faults.Place {
	switch {
	case r.virtual:
		return faults.Virtual
	case r.realPath:
		return faults.RealPath
	}
	return faults.Emulated
}

// nodesOf is the nodes that take part in any of the sheets.
func nodesOf(sheets []*runsheet.Sheet, place faults.Place) faults.Nodes {
	nodes := faults.Nodes{Lab: place}
	for _, role := range radio.Roles {
		if slices.ContainsFunc(sheets, func(s *runsheet.Sheet) bool { return s.Topology.Station(role) != nil }) {
			nodes.All = append(nodes.All, role)
		}
		if slices.ContainsFunc(sheets, func(s *runsheet.Sheet) bool { return len(s.Uses(role)) > 0 }) {
			nodes.Drivers = append(nodes.Drivers, role)
		}
	}
	return nodes
}

// faultCampaign is the faults injected into a running rehearsal; without faults it is
// nil, and its methods do nothing.
type faultCampaign struct {
	r      *rehearsal
	stop   func()
	err    error // once stop has returned
	faults map[int]faultlog.Fault
}

// faultList is the list of the rehearsal's faults in its data folder.
func (r *rehearsal) faultList() string {
	return filepath.Join(r.s.Data, "faults", r.campaign+".jsonl")
}

// startFaults begins to inject faults, which p shows.
func (r *rehearsal) startFaults(ctx context.Context, p *terminal.Progress) (*faultCampaign, error) {
	if r.schedule == nil {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(r.faultList()), 0o755); err != nil {
		return nil, err
	}
	list, err := os.Create(r.faultList())
	if err != nil {
		return nil, err
	}
	out := &faultCampaign{r: r, faults: map[int]faultlog.Fault{}}
	began := time.Now()
	c := &faults.Campaign{Schedule: r.schedule, Injector: r.injector(), Log: list, Show: func(f faultlog.Fault) {
		_, known := out.faults[f.Number]
		out.faults[f.Number] = f
		p.Line("%s", faultLine(f, known, began))
	}}
	out.stop = service.Go(ctx, func(ctx context.Context) { out.err = errors.Join(c.Run(ctx), list.Close()) })
	return out, nil
}

// faultLine is a fault as it begins, or, where it was known before, as it ends.
func faultLine(f faultlog.Fault, known bool, began time.Time) string {
	return faultSaid(fmt.Sprintf("fault %d", f.Number), f, known, began)
}

// faultSaid is [faultLine] with another name for the fault.
func faultSaid(name string, f faultlog.Fault, known bool, began time.Time) string {
	node := ""
	if f.Node != "" {
		node = " of " + f.Node
	}
	head := fmt.Sprintf("%s at %s: %s %s%s", name, f.From.Sub(began).Round(100*time.Millisecond), f.Kind, f.Target, node)
	switch {
	case f.Error != "":
		return fmt.Sprintf("%s: not injected: %s", head, f.Error)
	case !known:
		return fmt.Sprintf("%s (%s)", head, f.Detail)
	case f.To.IsZero():
		return fmt.Sprintf("%s has not ended (%s)", head, f.Detail)
	}
	return fmt.Sprintf("%s has ended after %.1f s", head, f.To.Sub(f.From).Seconds())
}

// mountDisks lays a file system that can fail over each node's state folder, where a
// fault is to hit one.
func (r *rehearsal) mountDisks(state string) error {
	if r.schedule == nil || !r.schedule.Hits(faultlog.Disk) {
		return nil
	}
	r.disks = map[radio.Role]*faultdisk.Disk{}
	for _, n := range r.lab.State.Nodes {
		path := filepath.Join(state, string(n.Role))
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		d, err := faultdisk.Mount(path)
		if err != nil {
			return err
		}
		r.disks[n.Role] = d
	}
	return nil
}

// giveClocks gives each node a clock of its own, where a fault is to step one. It stays
// with the lab, so that an agent that is started again has it, too.
func (r *rehearsal) giveClocks() error {
	if r.schedule == nil || !r.schedule.Injects(faultlog.ClockStep) {
		return nil
	}
	var err error
	r.clocks, err = faults.Clocks(r.lab.Clocks(), r.lab.State.Nodes)
	return err
}

// unmountDisks takes these file systems away; what the nodes wrote stays.
func (r *rehearsal) unmountDisks() {
	for role, d := range r.disks {
		if err := d.Unmount(); err != nil {
			r.log.Error("file system over a state folder could not be removed", "node", string(role), "error", err)
		}
	}
}

// forgetDisks removes the file systems of a rehearsal that was killed.
func forgetDisks(state string) error {
	for _, role := range radio.Roles {
		if err := faultdisk.Remove(filepath.Join(state, string(role))); err != nil {
			return err
		}
	}
	return nil
}

// injector injects into the rehearsal's own processes and namespaces.
func (r *rehearsal) injector() *faults.Lab {
	nodes := nodesOf(r.sheets, r.place())
	return &faults.Lab{
		Net:                r.lab,
		Second:             r.secondAgent,
		SecondOrchestrator: r.secondOrchestrator,
		Database:           filepath.Join(r.s.Data, postgres.Folder),
		Agent: func(role radio.Role) int {
			for i, n := range r.lab.State.Nodes {
				if n.Role == role {
					return r.agents[i].PID()
				}
			}
			return 0
		},
		Orchestrator:     r.serve.PID,
		HoldOrchestrator: r.hold.set,
		Answers: func(ctx context.Context) bool {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			if _, err := r.client.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{CampaignId: r.campaign, Limit: 1})); err != nil {
				return false
			}
			return healthy(ctx, r.base) // which also takes changes
		},
		DatabaseDisk: r.databaseDisk.current,
		Disk:         func(role radio.Role) *faultdisk.Disk { return r.disks[role] },
		Clock:        func(role radio.Role) *wallclock.Offset { return r.clocks[role] },
		Idle:         func(role radio.Role) bool { return !nodes.Has(faultlog.Driver, role) },
	}
}

// healthy reports whether an orchestrator says that all is well with its database.
func healthy(ctx context.Context, base string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", http.NoBody)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// end ends the faults that last, and blocks until what they hit works again.
func (c *faultCampaign) end() error {
	if c == nil {
		return nil
	}
	c.stop()
	return c.err
}

// exportFaults copies the list of faults to the exported results and returns its path;
// "" where there were none.
func (r *rehearsal) exportFaults() (string, error) {
	if r.schedule == nil {
		return "", nil
	}
	b, err := os.ReadFile(r.faultList())
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.results(), faultlog.FileName)
	return path, atomicfile.Write(path, b, 0o644)
}

// tally is what became of the trials of a campaign.
type tally struct {
	trials, succeeded, failed, open int
	excluded                        int                    // of trials whose last attempt counts neither for nor against a protocol
	uncounted                       map[string]int         // attempts that do not count, by reason
	begun                           map[string][]time.Time // by run, when attempts began
}

// longestRestart bounds the times that count as those of a restart: the run may have had
// nothing to do any more but repetitions.
const longestRestart = time.Hour

// restarts is how long the leading node took to begin its next attempt: from each kill
// or restart of its agent, and from when its agent was seen running after each power cut.
func (t *tally) restarts(all map[int]faultlog.Fault) (agent, power []time.Duration) {
	for _, number := range slices.Sorted(maps.Keys(all)) {
		f := all[number]
		if f.Error != "" || f.Node != string(radio.RoleClient) {
			continue
		}
		from, out := f.From, &agent
		switch {
		case f.Target == faultlog.Agent && (f.Kind == faultlog.Kill || f.Kind == faultlog.Restart):
		case f.Kind == faultlog.PowerCut && !f.To.IsZero():
			from, out = f.To, &power
		default:
			continue
		}
		next := time.Time{}
		for run, begun := range t.begun {
			for _, at := range begun {
				if (f.Run == "" || f.Run == run) && at.After(from) && (next.IsZero() || at.Before(next)) {
					next = at
				}
			}
		}
		if d := next.Sub(from); !next.IsZero() && d < longestRestart {
			*out = append(*out, d)
		}
	}
	return agent, power
}

// meanAndLongest describes times.
func meanAndLongest(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	sum := time.Duration(0)
	for _, d := range all {
		sum += d
	}
	return fmt.Sprintf("mean %.1f s, longest %.1f s (%d)", (sum / time.Duration(len(all))).Seconds(), slices.Max(all).Seconds(), len(all))
}

// summary prints what was injected, what became of the trials, and an audit of the
// campaign. The error is that of faults that have not ended, and of findings.
func (c *faultCampaign) summary(ctx context.Context) error {
	if c == nil {
		return nil
	}
	kinds, failed, lasting := map[string]int{}, 0, 0
	for _, f := range c.faults {
		switch {
		case f.Error != "":
			failed++
		case f.To.IsZero():
			lasting++
			fallthrough
		default:
			kinds[string(f.Kind)+" "+string(f.Target)]++
		}
	}
	fmt.Printf("\nFaults injected: %d (%s)", len(c.faults)-failed, counts(kinds))
	if failed > 0 {
		fmt.Printf("; %d could not be injected", failed)
	}
	fmt.Println()
	t, err := c.r.tally(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("Trials of the run sheets: %d; succeeded %d, failed %d, excluded %d, without a result %d\n", t.trials, t.succeeded, t.failed, t.excluded, t.open)
	fmt.Printf("Attempts that do not count: %s\n", counts(t.uncounted))
	if agent, power := t.restarts(c.faults); len(agent)+len(power) > 0 {
		fmt.Printf("Until the leading node's next attempt: from a kill or restart of its agent %s; from its agent running again after a power cut %s\n", meanAndLongest(agent), meanAndLongest(power))
	}
	findings, err := c.audit(ctx)
	if err != nil {
		return err
	}
	if lasting > 0 {
		err = fmt.Errorf("%s had not ended when the run was over: %s", terminal.Count(lasting, "fault"), c.r.faultList())
	}
	if lost := t.failed + t.excluded + t.open; c.r.realPath && lost > 0 {
		err = errors.Join(err, fmt.Errorf("%s of %d did not succeed, on interfaces that lose nothing by themselves: a fault, or what it left behind, counts as a property of a protocol, or a limit of the plan is too short", terminal.Count(lost, "trial"), t.trials))
	}
	if findings > 0 {
		err = errors.Join(err, fmt.Errorf("the audit has %s, see above; docs/audit.md says what each check proves", terminal.Count(findings, "finding")))
	}
	return err
}

// audit holds journals, store and injected faults against each other, prints what it
// finds, and returns how much that is.
func (c *faultCampaign) audit(ctx context.Context) (findings int, err error) {
	reports, err := trial.Audit(ctx, c.r.base, trial.AuditRequest{
		ID: c.r.campaign, Journals: []string{filepath.Join(c.r.s.Data, RehearsalAgents)}, Faults: c.r.faultList(),
	})
	if err != nil {
		return 0, fmt.Errorf("audit of the campaign: %w", err)
	}
	for _, r := range reports {
		findings += r.Findings()
	}
	fmt.Println()
	return findings, trial.PrintAudit(os.Stdout, reports)
}

// counts lists how often each thing was, the most frequent first; "none".
func counts(m map[string]int) string {
	var out []string
	for _, k := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], strings.Compare(a, b)) }) {
		out = append(out, fmt.Sprintf("%s %d", k, m[k]))
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}

func (r *rehearsal) tally(ctx context.Context) (tally, error) {
	t := tally{uncounted: map[string]int{}, begun: map[string][]time.Time{}}
	res, err := r.client.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{CampaignId: r.campaign, Limit: 10_000}))
	if err != nil {
		return t, client.Error(r.base, err)
	}
	for _, run := range res.Msg.Runs {
		one, err := r.client.GetRun(ctx, connect.NewRequest(&linktrialv1.GetRunRequest{RunId: run.Id}))
		if err != nil {
			return t, client.Error(r.base, err)
		}
		for _, row := range one.Msg.Trials {
			t.add(row)
			for _, a := range row.Attempts {
				t.begun[run.Id] = append(t.begun[run.Id], a.Started.AsTime())
			}
		}
	}
	return t, nil
}

func (t *tally) add(row *linktrialv1.TrialRow) {
	t.trials++
	switch row.Verdict {
	case "succeeded":
		t.succeeded++
	case "":
		t.open++
	case "invalid", "aborted": // a fault that was found after the run, when nothing is repeated
		t.excluded++
	default:
		t.failed++
	}
	for i, a := range row.Attempts {
		if i < len(row.Attempts)-1 || a.Verdict == "invalid" || a.Verdict == "aborted" {
			// A mark has its time and place after the colon; the audit lists those.
			reason, _, _ := strings.Cut(cmp.Or(a.Reason, a.Verdict), ": ")
			t.uncounted[reason]++
		}
	}
}
