package campaign

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/store"
)

// Plan is a compiled plan, to be run.
type Plan struct {
	Name      string // of the campaign
	Plan      string // of the plan
	File      string
	Text      []byte
	Hash      string
	Sheets    []*runsheet.Sheet
	Estimates [][]time.Duration // of each trial of each sheet
	Virtual   bool              // on the nodes of the virtual-time lab
	Moves     Moves
	Caveats   []string // sentences that are said with every result
}

// Moves says which runs wait until a person confirms that the nodes have been
// moved to where the run's topology has them.
type Moves int

const (
	// MovesOnReal are those with real radios whose topology differs from that of the run before.
	MovesOnReal Moves = iota
	// MovesConfirm are the first run and every one whose topology differs from that of the run before.
	MovesConfirm
	// MovesNone are none.
	MovesNone
)

// runsToConfirm reports for each of a plan's runs whether it waits.
func runsToConfirm(p *Plan, chosen []map[radio.Role]string, all []candidate) []bool {
	out := make([]bool, len(p.Sheets))
	for i, s := range p.Sheets {
		differs := i > 0 && s.Cell.Topology != p.Sheets[i-1].Cell.Topology
		switch p.Moves {
		case MovesConfirm:
			out[i] = i == 0 || differs
		case MovesOnReal:
			lead := slices.IndexFunc(all, func(c candidate) bool { return c.name == chosen[i][leader] })
			out[i] = differs && lead >= 0 && !all[lead].emulated
		}
	}
	return out
}

// ErrNothingOpen reports an abort of a campaign whose runs have all ended.
var ErrNothingOpen = errors.New("all runs of the campaign have ended")

// ErrNoCampaign reports that there is no campaign of the name.
var ErrNoCampaign = errors.New("no such campaign")

// Queue queues the runs of a plan as one campaign. Where no set of connected
// nodes can run one of them, nothing is queued and problems says what is
// missing.
func (e *Engine) Queue(ctx context.Context, p Plan) (id string, runs, problems []string, err error) {
	chosen := make([]map[radio.Role]string, len(p.Sheets))
	all := e.candidates()
	for i, s := range p.Sheets {
		var missing []string
		chosen[i], missing = choose(s, all, p.Virtual)
		if missing == nil {
			// The sheets were compiled for the nodes of a moment ago.
			reasons := unavailable(s, chosen[i], all)
			for _, treatment := range slices.Sorted(maps.Keys(reasons)) {
				missing = append(missing, fmt.Sprintf("treatment %s: %s", treatment, reasons[treatment]))
			}
		}
		for _, m := range missing {
			if !slices.Contains(problems, m) {
				problems = append(problems, m)
			}
		}
	}
	if problems != nil {
		return "", nil, problems, nil
	}
	if id, err = e.campaignID(ctx, p); err != nil {
		return "", nil, nil, err
	}
	confirm := runsToConfirm(&p, chosen, all)
	err = e.cfg.Store.InTx(ctx, func(tx store.Conn) error {
		if err := tx.InsertCampaign(ctx, store.InsertCampaignParams{ID: id, Name: p.Name, Plan: p.Plan, PlanFile: p.File, PlanText: p.Text, PlanHash: p.Hash, Caveats: p.Caveats}); err != nil {
			return err
		}
		for i, s := range p.Sheets {
			run := fmt.Sprintf("%s-%d", id, i+1)
			runs = append(runs, run)
			if err := e.insertRun(ctx, tx, run, id, s, p.Estimates[i], chosen[i]); err != nil {
				return fmt.Errorf("run %s: %w", run, err)
			}
			if confirm[i] {
				if err := campaigndb.New(tx).ConfirmMove(ctx, run); err != nil {
					return fmt.Errorf("run %s: %w", run, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		return "", nil, nil, fmt.Errorf("queue campaign: %w", err)
	}
	e.cfg.Logger.Info("campaign queued", "campaign", id, "plan", p.Plan, "runs", len(runs))
	e.reviewRuns()
	return id, runs, nil, nil
}

// NodesFor returns the connected nodes that would run a sheet now, or everything that is
// missing, for people. Those of the virtual-time lab are not among them.
func (e *Engine) NodesFor(s *runsheet.Sheet) (map[radio.Role]string, []string) {
	return choose(s, e.candidates(), false)
}

func (e *Engine) insertRun(ctx context.Context, tx store.Conn, run, campaign string, s *runsheet.Sheet, estimates []time.Duration, nodes map[radio.Role]string) error {
	encoded, err := s.Encode()
	if err != nil {
		return err
	}
	seconds := make([]float64, len(s.Trials))
	trials := make([]store.InsertTrialsParams, len(s.Trials))
	for i, t := range s.Trials {
		if i < len(estimates) {
			seconds[i] = estimates[i].Seconds()
		}
		trials[i] = store.InsertTrialsParams{RunID: run, Trial: int32(i), Iteration: int32(t.Iteration), Treatment: t.Treatment}
	}
	if err := tx.InsertRun(ctx, store.NewRun(run, campaign, s, encoded, seconds)); err != nil {
		return err
	}
	if e.cfg.Sign != nil {
		sig := e.cfg.Sign(run, encoded)
		if err := campaigndb.New(tx).InsertRunSignature(ctx, campaigndb.InsertRunSignatureParams{RunID: run, KeyID: sig.KeyID, Signature: sig.Bytes}); err != nil {
			return err
		}
	}
	for role, node := range nodes {
		if err := tx.InsertRunNode(ctx, store.InsertRunNodeParams{RunID: run, Role: string(role), Node: node}); err != nil {
			return err
		}
	}
	_, err = tx.InsertTrials(ctx, trials)
	return err
}

// candidates returns all nodes, by name.
func (e *Engine) candidates() []candidate {
	var out []candidate
	for _, n := range e.Nodes.List() {
		out = append(out, candidate{name: n.Name, role: radio.Role(n.Role), radio: n.Radio, emulated: n.Emulated, lab: n.Lab, problem: n.LabProblem, bare: n.WithoutRadio(), virtual: n.Virtual,
			connected: n.Connected, contact: n.LastContact, busy: n.Run != "", address: n.RadioAddress, drivers: n.Drivers})
	}
	return out
}

// campaignID returns the identity for a new campaign. In virtual time it follows
// from the plan, so that the same plan in an empty store gives the same exports
// to the byte; where the store has it already, the next one is tried.
func (e *Engine) campaignID(ctx context.Context, p Plan) (string, error) {
	if !p.Virtual {
		return newID(), nil
	}
	for n := 0; ; n++ {
		id := idOf(sha256.Sum256(fmt.Appendf(nil, "%s %d", p.Hash, n)))
		c, err := e.db.CampaignRuns(ctx, id)
		if err != nil {
			return "", fmt.Errorf("queue campaign: %w", err)
		}
		if c.Runs == 0 {
			return id, nil
		}
	}
}

// newID returns a random identity: short enough to type, long enough that none
// comes twice.
func newID() string {
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // crypto/rand.Read never returns an error
	}
	return idOf(b)
}

func idOf(random [32]byte) string {
	const first, rest = "abcdefghjkmnpqrstuvwxyz", "abcdefghjkmnpqrstuvwxyz23456789"
	b := random[:8]
	b[0] = first[int(b[0])%len(first)]
	for i := 1; i < len(b); i++ {
		b[i] = rest[int(b[i])%len(rest)]
	}
	return string(b)
}

// Abort ends all runs of a campaign that have not ended. It returns once the
// store has the request; the nodes end with their next poll.
func (e *Engine) Abort(ctx context.Context, campaign, reason string) error {
	if reason == "" {
		reason = "aborted"
	}
	c, err := e.db.CampaignRuns(ctx, campaign)
	if err != nil {
		return fmt.Errorf("abort campaign: %w", err)
	}
	switch {
	case c.Runs == 0:
		return fmt.Errorf("%s: %w", campaign, ErrNoCampaign)
	case c.Open == 0:
		return fmt.Errorf("%s: %w", campaign, ErrNothingOpen)
	}
	if _, err := e.db.AbortCampaign(ctx, campaigndb.AbortCampaignParams{CampaignID: campaign, Reason: reason}); err != nil {
		return fmt.Errorf("abort campaign: %w", err)
	}
	e.cfg.Logger.Info("campaign is to be aborted", "campaign", campaign, "reason", reason)
	e.reviewRuns()
	return nil
}

// CountRuns counts the runs in each state.
func CountRuns(ctx context.Context, c store.Conn) (map[State]int64, error) {
	rows, err := campaigndb.New(c).RunsByState(ctx)
	counts := map[State]int64{}
	for _, r := range rows {
		counts[State(r.State)] = r.N
	}
	return counts, err
}
