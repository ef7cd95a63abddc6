package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store/storedb"
	"linktrial/protocols/contract"
)

// Measured is runs as figures and tables are made from them.
type Measured struct {
	// Dataset is what [Store.Dataset] gives, but for what only exports show: logs,
	// provenance, clocks, the radio's counters, and of own campaigns the words of
	// directors. Every value of a table that is made of it is the same.
	Dataset report.Dataset
	Heads   []Head // of its runs
}

// Head is a run with how far it has come, by the journal: marks change nothing.
type Head struct {
	storedb.RunHeadsRow
	TrialsEnded, TrialsNotNeeded, AttemptsFailed int32
}

// Overview is what is known of a run that has ended without its estimates.
func (h *Head) Overview() *storedb.RunOverview {
	return &storedb.RunOverview{ID: h.ID, CampaignID: h.CampaignID, Plan: h.Plan, Cell: h.Cell, State: h.State, Message: h.Message, SheetHash: h.SheetHash,
		Radio: h.Radio, Topology: h.Topology, SizeBytes: h.SizeBytes, Trials: h.Trials, CreatedAt: h.CreatedAt, StartedAt: h.StartedAt, EndedAt: h.EndedAt,
		TrialsEnded: h.TrialsEnded, TrialsNotNeeded: h.TrialsNotNeeded, AttemptsFailed: h.AttemptsFailed, Place: h.Place, Nodes: h.Nodes, Sealed: h.Sealed, LateRecords: h.LateRecords}
}

// Measured reads the runs of each scope, all of them at one moment. Nobody may
// change the runs.
func (s *Store) Measured(ctx context.Context, scopes []Scope) ([]Measured, error) {
	var campaigns, runs []string
	for _, x := range scopes {
		if x.Imported {
			continue
		}
		if x.Run == "" {
			campaigns = append(campaigns, x.Campaign)
		} else {
			runs = append(runs, x.Run)
		}
	}
	var out []Measured
	err := s.Snapshot(ctx, func(tx Conn) error {
		q := tx.q
		rows, err := q.RunHeads(ctx, storedb.RunHeadsParams{Campaigns: campaigns, Runs: runs})
		if err != nil {
			return err
		}
		heads := make([]Head, len(rows))
		for i := range rows {
			heads[i].RunHeadsRow = rows[i]
		}
		read, err := s.runs(ctx, q, heads)
		if err != nil {
			return err
		}
		for _, x := range scopes {
			if x.Imported {
				f, err := importedMeasured(ctx, q, x)
				if err != nil {
					return err
				}
				out = append(out, f)
				continue
			}
			f := Measured{Dataset: report.Dataset{Campaign: x.Campaign, Complete: true}}
			for i, h := range heads {
				if h.CampaignID != x.Campaign || x.Run != "" && h.ID != x.Run {
					continue
				}
				f.Dataset.Plan = h.Plan
				f.Dataset.Complete = f.Dataset.Complete && h.EndedAt != nil
				f.Dataset.Runs, f.Heads = append(f.Dataset.Runs, *read[i]), append(f.Heads, h)
			}
			if x.Run != "" && len(f.Heads) == 0 {
				return fmt.Errorf("run %q: %w", x.Run, ErrNotFound)
			}
			out = append(out, f)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read measured values: %w", err)
	}
	return out, nil
}

// version identifies the state of the database that the run's values depend on. It
// is empty for a run that has not ended: commands change such a run, too.
func (h *Head) version() string {
	if h.EndedAt == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %d %d", h.ID, h.State, h.Committed, h.Marked)
}

// runs returns the runs of the heads, whose counts it sets. Runs that have ended are
// read once.
func (s *Store) runs(ctx context.Context, q *storedb.Queries, heads []Head) ([]*report.Run, error) {
	out := make([]*report.Run, len(heads))
	var wanted []Head
	for i := range heads {
		h := &heads[i]
		if k, ok := s.ended.get(h.version()); ok {
			out[i], h.TrialsEnded, h.TrialsNotNeeded, h.AttemptsFailed = k.run, k.trialsEnded, k.trialsNotNeeded, k.attemptsFailed
		} else {
			wanted = append(wanted, *h)
		}
	}
	if len(wanted) == 0 {
		return out, nil
	}
	read, err := s.readMeasured(ctx, q, wanted)
	if err != nil {
		return nil, err
	}
	for i, k := 0, 0; i < len(heads); i++ {
		if out[i] != nil {
			continue
		}
		h := &wanted[k]
		heads[i], out[i] = *h, read[k]
		k++
		if v := h.version(); v != "" {
			s.ended.add(v, keptRun{out[i], h.TrialsEnded, h.TrialsNotNeeded, h.AttemptsFailed})
		}
	}
	return out, nil
}

// measuredReader reads runs for [Measured], a whole table's rows of all of them at once:
// a campaign may have hundreds of runs.
type measuredReader struct {
	q     *storedb.Queries
	ids   []string
	runs  map[string]*report.Run
	heads map[string]*Head
}

// readMeasured returns the runs of the heads, whose counts it sets.
func (s *Store) readMeasured(ctx context.Context, q *storedb.Queries, heads []Head) ([]*report.Run, error) {
	hashes := make([]string, len(heads))
	r := &measuredReader{q: q, ids: make([]string, len(heads)), runs: map[string]*report.Run{}, heads: map[string]*Head{}}
	for i, h := range heads {
		r.ids[i], hashes[i] = h.ID, h.SheetHash
	}
	sheets, err := s.sheets(ctx, q, r.ids, hashes)
	if err != nil {
		return nil, err
	}
	out := make([]*report.Run, len(heads))
	for i := range heads {
		h := &heads[i]
		out[i] = h.run(sheets[h.SheetHash])
		r.runs[h.ID], r.heads[h.ID] = out[i], h
	}
	if err := r.trials(ctx); err != nil {
		return nil, err
	}
	marks, err := measuredMarks(ctx, q, r.ids)
	if err != nil {
		return nil, err
	}
	if err := r.attempts(ctx, marks); err != nil {
		return nil, err
	}
	if err := addProbes(ctx, q, out); err != nil {
		return nil, err
	}
	for _, run := range out {
		if err := addLooks(ctx, q, run); err != nil {
			return nil, fmt.Errorf("run %s: %w", run.ID, err)
		}
		if err := nameCrashes(ctx, q, run); err != nil {
			return nil, fmt.Errorf("run %s: crashes of listeners: %w", run.ID, err)
		}
		for i := range run.Trials {
			t := &run.Trials[i]
			t.Verdict = OfTrial(t.Verdict, t.Attempts)
		}
	}
	return out, nil
}

// run is the run without its trials.
func (h *Head) run(sheet *runsheet.Sheet) *report.Run {
	r := &report.Run{ID: h.ID, State: h.State, Message: h.Message, Place: h.Place, SheetHash: h.SheetHash, Sheet: sheet}
	if h.StartedAt != nil {
		r.Started = *h.StartedAt
	}
	if h.EndedAt != nil {
		r.Ended = *h.EndedAt
	}
	r.Trials = make([]report.Trial, 0, h.Trials)
	return r
}

// trials adds the trials to the runs.
func (r *measuredReader) trials(ctx context.Context) error {
	rows, err := r.q.MeasuredTrials(ctx, r.ids)
	if err != nil {
		return err
	}
	for _, t := range rows {
		run := r.runs[t.RunID]
		if int(t.Trial) != len(run.Trials) || int(t.Trial) >= len(run.Sheet.Trials) {
			return fmt.Errorf("run %s: trial %d is not the sheet's", t.RunID, t.Trial)
		}
		x := report.Trial{Index: int(t.Trial), Iteration: int(t.Iteration), Treatment: t.Treatment}
		if t.Verdict != nil {
			x.Verdict = journal.Verdict(*t.Verdict)
			r.heads[t.RunID].TrialsEnded++
		}
		if t.NotNeeded {
			r.heads[t.RunID].TrialsNotNeeded++
		}
		run.Trials = append(run.Trials, x)
	}
	return nil
}

// attempts adds the attempts to the trials of the runs.
func (r *measuredReader) attempts(ctx context.Context, marks map[string]Marks) error {
	flows, err := measuredFlows(ctx, r.q, r.ids)
	if err != nil {
		return err
	}
	rows, err := r.q.MeasuredAttempts(ctx, r.ids)
	if err != nil {
		return err
	}
	for _, a := range rows {
		run := r.runs[a.RunID]
		if a.Verdict != nil && *a.Verdict != string(journal.Succeeded) {
			r.heads[a.RunID].AttemptsFailed++
		}
		trial := &run.Sheet.Trials[a.Trial]
		row := storedb.Attempt{RunID: a.RunID, Trial: a.Trial, Attempt: a.Attempt, StartedAt: a.StartedAt, Verdict: a.Verdict, Reason: a.Reason, Message: a.Message, DurationNs: a.DurationNs,
			CommonWindow: a.CommonWindow, Control: a.Control, Host: a.Host}
		x, err := BuildAttempt(&row, flows[attemptKey{a.RunID, a.Trial, a.Attempt}], trial, marks[a.RunID].Of(a.Trial, a.Attempt))
		if err == nil {
			err = errors.Join(readBound(&x.Ideal, a.IdealNs, trial), readBound(&x.CodedBound, a.CodedBoundNs, trial))
		}
		if err != nil {
			return fmt.Errorf("run %s, trial %d, attempt %d: %w", a.RunID, a.Trial, a.Attempt, err)
		}
		run.Trials[a.Trial].Attempts = append(run.Trials[a.Trial].Attempts, *x)
	}
	return nil
}

type attemptKey struct {
	run            string
	trial, attempt int32
}

// measuredMarks are the marks of runs that have any.
func measuredMarks(ctx context.Context, q *storedb.Queries, runs []string) (map[string]Marks, error) {
	rows, err := q.MeasuredMarks(ctx, runs)
	if err != nil {
		return nil, err
	}
	out := map[string]Marks{}
	for _, r := range rows {
		if out[r.RunID] == nil {
			out[r.RunID] = Marks{}
		}
		out[r.RunID][[2]int32{r.Trial, r.Attempt}] = &Mark{Reason: r.Reason, By: r.GivenBy, At: r.GivenAt}
	}
	return out, nil
}

// measuredFlows returns the flows of each attempt, in order.
func measuredFlows(ctx context.Context, q *storedb.Queries, runs []string) (map[attemptKey][]Flow, error) {
	receptions, err := q.MeasuredReceptions(ctx, runs)
	if err != nil {
		return nil, err
	}
	received := Received(receptions)
	rows, err := q.MeasuredFlows(ctx, runs)
	if err != nil {
		return nil, err
	}
	out := make(map[attemptKey][]Flow, len(rows))
	for i := range rows {
		f := &rows[i]
		k := attemptKey{f.RunID, f.Trial, f.Attempt}
		x := NewFlow(storedb.Flow{RunID: f.RunID, Trial: f.Trial, Attempt: f.Attempt, Flow: f.Flow, Transfer: f.Transfer, Verdict: f.Verdict,
			ConnectNs: f.ConnectNs, SizeBytes: f.SizeBytes, ElapsedNs: f.ElapsedNs, Digest: f.Digest}, received)
		x.last = &LastState{Sample: contract.Sample{Retransmits: known(f.Retransmits), Timeouts: known(f.Timeouts),
			TransmittedBytes: known(f.TransmittedBytes), RetransmittedBytes: known(f.RetransmittedBytes)}}
		if f.RttMeanUs >= 0 {
			x.last.RTT = &journal.RoundTrips{MeanUS: f.RttMeanUs, LeastUS: known(f.RttLeastUs)}
		}
		out[k] = append(out[k], x)
	}
	return out, nil
}

// sheets are run sheets by their hash. They never change, so those that were
// read before need not be read again.
func (s *Store) sheets(ctx context.Context, q *storedb.Queries, runs, hashes []string) (map[string]*runsheet.Sheet, error) {
	out := map[string]*runsheet.Sheet{}
	var wanted []string
	for i, h := range hashes {
		if out[h] != nil || slices.Contains(wanted, runs[i]) {
			continue
		}
		if sheet, ok := s.decoded.get(h); ok {
			out[h] = sheet
		} else {
			wanted = append(wanted, runs[i])
		}
	}
	if len(wanted) == 0 {
		return out, nil
	}
	rows, err := q.Sheets(ctx, wanted)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if out[row.SheetHash] != nil {
			continue
		}
		sheet, err := runsheet.Decode(row.Sheet)
		if err != nil {
			return nil, err
		}
		out[row.SheetHash] = sheet
		s.decoded.add(row.SheetHash, sheet)
	}
	return out, nil
}

// Sheets are the sheets of runs by their hashes, which are given in the same order. Nobody
// may change them.
func (s *Store) Sheets(ctx context.Context, runs, hashes []string) (map[string]*runsheet.Sheet, error) {
	sheets, err := s.sheets(ctx, s.q, runs, hashes)
	if err != nil {
		return nil, fmt.Errorf("sheets of %d runs: %w", len(runs), err)
	}
	return sheets, nil
}

// Sheet is a run's sheet, which nobody may change.
func (s *Store) Sheet(ctx context.Context, run, hash string) (*runsheet.Sheet, error) {
	sheets, err := s.sheets(ctx, s.q, []string{run}, []string{hash})
	if err != nil {
		return nil, fmt.Errorf("sheet of run %s: %w", run, err)
	}
	if sheets[hash] == nil {
		return nil, fmt.Errorf("run %q: %w", run, ErrNotFound)
	}
	return sheets[hash], nil
}

// readBound reads a bound of the trial from its list in the radio's report,
// where there is one.
func readBound(into *time.Duration, list json.RawMessage, trial *runsheet.Trial) error {
	if list == nil {
		return nil
	}
	var flows []time.Duration
	if err := json.Unmarshal(list, &flows); err != nil {
		return fmt.Errorf("bound of the radio's report: %w", err)
	}
	*into = boundOf(flows, trial)
	return nil
}

// known is nil for -1, which queries return for what is not known.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
