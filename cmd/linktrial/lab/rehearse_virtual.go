package lab

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/driver"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/cmd/linktrial/trial"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/lab/uml"
	"linktrial/lab/uml/guest"
)

// virtual runs a plan in the virtual-time lab. To the orchestrator it is a
// disconnected run: nodes without contact while they run, which deliver their journals
// afterwards.
type virtual struct {
	*rehearsal
	agents linktrialv1connect.AgentServiceClient
	kernel uml.Kernel

	executable string // what the guest runs
	// missing is the treatments that cannot be run in a guest.
	missing trial.Missing
}

func (r *rehearsal) virtually(ctx context.Context, text []byte, log *os.File) error {
	kernel, err := uml.CachedKernel("")
	if err != nil {
		return err
	}
	if err := r.orchestrator(ctx, log); err != nil {
		return err
	}
	executable, err := r.s.Executable()
	if err != nil {
		return err
	}
	v := &virtual{rehearsal: r, agents: client.NewAgent(r.base), kernel: kernel, executable: executable}
	return v.trials(ctx, text)
}

func (v *virtual) register(ctx context.Context, roles map[radio.Role]bool) error {
	drivers, err := v.query(ctx)
	if err != nil {
		return err
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return fmt.Errorf("key of the lab: %w", err)
	}
	deadline := time.Now().Add(abortLimit)
	for role := range roles {
		req := &linktrialv1.RegisterRequest{
			Name: guest.NodeName(role), Role: string(role), Version: v.s.Version, Host: guest.Host, Kernel: v.kernel.Version,
			Emulated: true, Virtual: true, RadioAddress: radio.Addresses[role], Drivers: drivers,
			Incarnation: fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano()), Protocol: agentprotocol.Number,
		}
		// This process boots the guests, and vouches for them: they have no other radio.
		proof := signature.SignLab(key, signature.LabStatement{Kind: signature.LabVirtual, Subject: req.Name, Detail: req.Incarnation, Role: req.Role, Address: req.RadioAddress})
		req.LabKey, req.LabSignature = proof.Key, proof.Signature
		for {
			_, err := v.agents.Register(ctx, connect.NewRequest(req))
			if err == nil {
				break
			}
			if connect.CodeOf(err) != connect.CodeAlreadyExists {
				return client.Error(v.base, err)
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("another rehearsal in virtual time is running at %s: wait until it has ended, or give this one an orchestrator of its own (--data with another folder, and --orchestrator with a URL at which none answers)", v.base)
			}
			if !backoff.Sleep(ctx, 200*time.Millisecond) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// abortLimit is how long the runs of a rehearsal that was killed may take to end after
// [rehearsal.forgetEarlier] has aborted them.
const abortLimit = 20 * time.Second

// query asks the drivers of the plan in a guest whether they can run there, and which
// values their options can have with its kernel.
func (v *virtual) query(ctx context.Context) ([]*linktrialv1.DriverState, error) {
	var names []string
	for _, p := range v.plan.Protocols() {
		if v.cat.Manifest(p) != nil {
			names = append(names, p)
		}
	}
	parent := filepath.Join(v.s.Data, "virtual")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "query-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	states, err := uml.Query(ctx, uml.RunConfig{Kernel: v.kernel, Drivers: v.s.Drivers, Dir: dir, Executable: v.executable, Seed: v.plan.Seed, Logger: v.log}, names)
	if err != nil {
		return nil, err
	}
	var drivers []*linktrialv1.DriverState
	for _, s := range states {
		d := &linktrialv1.DriverState{Name: s.Name, Version: v.cat.Manifest(s.Name).Version, Unsupported: s.Unsupported, Choices: map[string]string{}, Remarks: s.Remarks}
		for option, values := range s.Choices {
			d.Choices[option] = strings.Join(values, ",")
		}
		drivers = append(drivers, d)
	}
	return drivers, nil
}

// trials runs all sheets of the plan in guests, delivers their journals and shows the
// results.
func (v *virtual) trials(ctx context.Context, text []byte) error {
	cfg, err := v.start(ctx, text)
	if err != nil {
		return err
	}
	show := NewVirtualProgress(os.Stdout)
	cfg.Progress = show.Show
	campaign := v.watchFaults(&cfg, show.out)
	result, err := uml.Run(ctx, cfg)
	show.out.Finish()
	if err != nil {
		v.notKept = v.keepMeasured(ctx, cfg, result, campaign)
		return err
	}
	if err := v.deliver(ctx, result); err != nil {
		return err
	}
	failed := failures(result)
	if len(failed) > 0 {
		_, err := v.client.AbortCampaign(ctx, connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: v.campaign, Reason: terminal.Count(len(failed), "run") + " did not end well; the first: " + failed[0].Error()}))
		if err != nil && connect.CodeOf(err) != connect.CodeFailedPrecondition {
			return client.Error(v.base, err)
		}
	}
	if err := v.keepLogs(cfg, result); err != nil {
		return err
	}
	if err := campaign.collect(result); err != nil {
		return err
	}
	if err := v.completed(ctx, len(result.Sheets)); err != nil {
		return err
	}
	if err := os.Remove(v.marker()); err != nil {
		return err
	}
	if err := v.present(ctx); err != nil {
		return err
	}
	if len(failed) > maxShown {
		failed = append(failed[:maxShown:maxShown], fmt.Errorf("and %s did not end well", terminal.Count(len(failed)-maxShown, "more run")))
	}
	return errors.Join(campaign.summary(ctx), errors.Join(failed...), v.missing.Err(), os.RemoveAll(cfg.Dir))
}

// start registers the nodes, starts the plan's campaign at the orchestrator and returns
// what the guests run: the signed sheets.
func (v *virtual) start(ctx context.Context, text []byte) (uml.RunConfig, error) {
	cfg := uml.RunConfig{Kernel: v.kernel, Drivers: v.s.Drivers, Executable: v.executable, Jobs: v.jobs, Seed: v.plan.Seed}
	roles, flows := map[radio.Role]bool{}, 0
	for _, sh := range v.sheets {
		flows = max(flows, sh.MostAtOnce())
		for _, st := range sh.Topology.Stations {
			roles[st.Role] = true
		}
	}
	var err error
	if cfg.MemoryBytes, err = uml.MemoryFor(flows); err != nil {
		return cfg, fmt.Errorf("%s: %w", v.file, err)
	}
	if err := v.register(ctx, roles); err != nil {
		return cfg, err
	}
	res, err := v.client.StartPlan(ctx, connect.NewRequest(&linktrialv1.StartPlanRequest{File: v.file, Text: text, Virtual: true}))
	if err != nil {
		return cfg, client.Error(v.base, err)
	}
	if err := trial.Refused(v.file, res.Msg.Problems); err != nil {
		return cfg, err
	}
	v.campaign = res.Msg.CampaignId
	if err := os.WriteFile(v.marker(), []byte(v.campaign), 0o644); err != nil {
		return cfg, err
	}
	if v.missing, err = trial.FindMissing(ctx, v.base, v.campaign, text); err != nil {
		return cfg, err
	}
	v.missing.Say()
	cfg.Dir = filepath.Join(v.s.Data, "virtual", v.campaign)
	for _, id := range res.Msg.RunIds {
		signed, keys, err := driver.SignedSheet(ctx, v.base, id)
		if err != nil {
			return cfg, err
		}
		// The orchestrator's sheet has no trials of what is missing.
		sh, err := runsheet.Decode(signed.Document)
		if err != nil {
			return cfg, fmt.Errorf("run sheet of %s: %w", id, err)
		}
		signed.Network, signed.Trials = sh.Network, len(sh.Trials)
		signed.Faults = v.faultsOf(len(cfg.Sheets), sh)
		cfg.Sheets, cfg.Trust = append(cfg.Sheets, signed), keys
	}
	return cfg, nil
}

// failures returns an error for every run that did not end well.
func failures(result uml.Result) []error {
	var out []error
	for _, r := range result.Sheets {
		if r.Err != nil {
			out = append(out, fmt.Errorf("run %s: %w; %d of its %d trials have ended", r.Run, r.Err, r.Ended, r.Trials))
		}
	}
	return out
}

// maxShown is the number of failed runs that are listed one by one.
const maxShown = 5

// deliver sends the journals to the orchestrator as agents do.
func (v *virtual) deliver(ctx context.Context, result uml.Result) error {
	show := terminal.NewStages(os.Stdout)
	defer show.Finish()
	for i, r := range result.Sheets {
		for role, path := range r.Journals {
			if err := v.deliverFile(ctx, r.Run, guest.NodeName(role), path); err != nil {
				return fmt.Errorf("journal of %s in run %s: %w", role, r.Run, err)
			}
		}
		show.Stage("storing journals", float64(i+1)/float64(len(result.Sheets)))
	}
	return nil
}

// keepLimit is how long an interrupted rehearsal takes at most to store what was
// measured; another interrupt ends it at once.
const keepLimit = 10 * time.Minute

// keepMeasured stores what an interrupted rehearsal has measured: runs that had ended
// are completed, and the attempts of the others are kept when the campaign is aborted.
// The list of the faults that were injected stays in the data folder.
func (v *virtual) keepMeasured(ctx context.Context, cfg uml.RunConfig, result uml.Result, campaign *faultCampaign) error {
	ended, begun := 0, 0
	for _, r := range result.Sheets {
		if len(r.Journals) == 0 {
			continue
		}
		begun++
		if r.Err == nil {
			ended++
		}
	}
	if begun == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepLimit)
	defer cancel()
	fmt.Printf("interrupted: storing what was measured in %s, of which %d had ended\n", terminal.Count(begun, "run"), ended)
	if err := errors.Join(v.deliver(ctx, result), campaign.collect(result)); err != nil {
		return fmt.Errorf("%w; the journals are in %s", err, cfg.Dir)
	}
	if campaign != nil {
		fmt.Printf("faults injected until then: %d, listed in %s; to audit them: linktrial audit-run %s --journals %s --faults %[2]s\n",
			len(campaign.faults), v.faultList(), v.campaign, filepath.Join(v.s.Data, RehearsalAgents))
	}
	if err := v.completed(ctx, ended); err != nil {
		return err
	}
	return errors.Join(v.keepLogs(cfg, result), os.RemoveAll(cfg.Dir))
}

// completed blocks until the orchestrator has ended so many runs, or ctx ends, and says
// so where that takes long.
func (v *virtual) completed(ctx context.Context, want int) error {
	waiting := terminal.NewWaiting(os.Stdout)
	defer waiting.Stop()
	for {
		res, err := v.client.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{CampaignId: v.campaign, Limit: 10_000}))
		if err != nil {
			return client.Error(v.base, err)
		}
		over := 0
		for _, run := range res.Msg.Runs {
			if terminal.Over(run.State) {
				over++
			}
		}
		if over >= want {
			return nil
		}
		waiting.Step(fmt.Sprintf("the orchestrator has completed %d of %s; one of which a node's journal has no end, as after a fault, takes a minute", over, terminal.Count(want, "run")))
		if !backoff.Sleep(ctx, 50*time.Millisecond) {
			return fmt.Errorf("%d of %s that had ended are not completed at the orchestrator: %w", want-over, terminal.Count(want, "run"), ctx.Err())
		}
	}
}

// keepLogs brings journals, packet logs and drivers' logs from the guests' folder,
// which is removed, to where a rehearsal in real time leaves them.
func (v *virtual) keepLogs(cfg uml.RunConfig, result uml.Result) error {
	state := filepath.Join(v.s.Data, RehearsalAgents)
	if err := os.RemoveAll(state); err != nil { // those of an earlier rehearsal
		return err
	}
	for _, r := range result.Sheets {
		for role, journal := range r.Journals {
			if err := keepJournal(journal, filepath.Join(state, string(role), "runs", r.Run)); err != nil {
				return err
			}
			from := filepath.Join(cfg.Dir, guest.Sheet{Run: r.Run}.StateDir(role))
			logs, err := logFiles(from)
			if err != nil {
				return err
			}
			for _, file := range logs {
				to := filepath.Join(state, string(role), file)
				if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
					return err
				}
				if err := os.Rename(filepath.Join(from, file), to); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// keepJournal links a journal: until the rehearsal is over, its own place has it, too.
func keepJournal(path, dir string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil // the guest has not come so far
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Link(path, filepath.Join(dir, "journal.jsonl"))
}

// maxDeliveries is how often a batch is sent before delivery fails and the journals
// stay in their folder: a busy machine may not store a batch in time.
const maxDeliveries = 10

// batchBytes is the largest size of one delivery, the same as for agents.
const batchBytes = 1 << 20

func (v *virtual) deliverFile(ctx context.Context, run, node, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var batch []*linktrialv1.JournalRecord
	size := 0
	send := func() error {
		if len(batch) == 0 {
			return nil
		}
		req := &linktrialv1.DeliverRequest{Name: node, RunId: run, Records: batch}
		batch, size = nil, 0
		for tries := 1; ; tries++ {
			_, err := v.agents.Deliver(ctx, connect.NewRequest(req))
			if err == nil || tries == maxDeliveries || connect.CodeOf(err) == connect.CodeInvalidArgument || connect.CodeOf(err) == connect.CodeFailedPrecondition {
				return client.Error(v.base, err)
			}
			if !backoff.Sleep(ctx, 2*time.Second) {
				return ctx.Err()
			}
		}
	}
	if _, err := journal.Scan(bufio.NewReaderSize(f, 1<<20), func(r journal.Record, _ int64) error {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if size += len(b); size > batchBytes {
			if err := send(); err != nil {
				return err
			}
			size = len(b)
		}
		batch = append(batch, &linktrialv1.JournalRecord{Seq: r.Seq, Json: b})
		return nil
	}); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return send()
}

// VirtualProgress shows the progress of all guests in one line.
type VirtualProgress struct {
	out   *terminal.Progress
	shown time.Time
}

// NewVirtualProgress writes to a terminal or to anything else.
func NewVirtualProgress(out *os.File) *VirtualProgress {
	return &VirtualProgress{out: terminal.NewProgress(out)}
}

// manyAttempts is from how many on the attempts of the running trial are shown: faults
// may leave it too little time.
const manyAttempts = 6

// Show shows how far the guests have come, a few times a second at most.
func (p *VirtualProgress) Show(u uml.Progress) {
	every := 10 * time.Second
	if p.out.Moves() {
		every = 200 * time.Millisecond
	}
	if time.Since(p.shown) < every && u.SheetsEnded < u.Sheets || u.Trials == 0 {
		return
	}
	p.shown = time.Now()
	share := float64(u.TrialsEnded) / float64(u.Trials)
	left := ""
	if more, known := u.Left(); known {
		left = fmt.Sprintf(", about %s left", terminal.ForPeople(more.Seconds()))
	}
	decimals := 0
	if u.PerSecond() < 10 {
		decimals = 1
	}
	again := ""
	if u.Attempts >= manyAttempts {
		again = fmt.Sprintf(", the running trial attempted %d times", u.Attempts)
	}
	p.out.Moving(fmt.Sprintf("%3.0f %%  run %d of %d, %d of %d trials%s, %s of virtual time, %.*f times as fast as real%s",
		100*share, min(u.SheetsEnded+1, u.Sheets), u.Sheets, u.TrialsEnded, u.Trials, again, terminal.ForPeople(u.Virtual.Seconds()), decimals, u.PerSecond(), left))
}
