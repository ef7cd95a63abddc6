package whole

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/stats"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/report/audit"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

// failing is a runner whose drivers succeed at once, but those of the protocols that it names.
type failing []string

func (f failing) Start(_ context.Context, protocol string, p *contract.Parameters, _ io.Reader) (executor.Process, error) {
	id := p.Transfer.ID
	events := []contract.Event{{Event: contract.KindReady, Info: &contract.Info{Implementation: "script"}}}
	if slices.Contains(f, protocol) {
		events = append(events, contract.Event{Event: contract.KindError, Transfer: id, Code: contract.CodeReset, Message: "as scripted"})
	} else {
		events = append(events, contract.Event{Event: contract.KindConnected, Transfer: id, ConnectNS: 7},
			contract.Event{Event: contract.KindResult, Transfer: id, Result: &contract.Result{SizeBytes: p.Transfer.SizeBytes, ElapsedNS: 100e6, Digest: storetest.Digest}})
	}
	var out bytes.Buffer
	for _, e := range events {
		if err := json.NewEncoder(&out).Encode(e); err != nil {
			return nil, err
		}
	}
	done := make(chan struct{})
	close(done)
	return ended{io.NopCloser(&out), done}, nil
}

// ended is a process that has exited.
type ended struct {
	out  io.ReadCloser
	done chan struct{}
}

func (p ended) Output() io.ReadCloser  { return p.out }
func (p ended) Done() <-chan struct{}  { return p.done }
func (p ended) Exit() executor.Exit    { return executor.Exit{} }
func (p ended) Log() string            { return "" }
func (p ended) Terminate()             {}
func (p ended) Stops() *executor.Stops { return nil }
func (p ended) Kill()                  {}

// stopSheet has 12 iterations of three treatments, and a rule that looks after 10 and 12.
func stopSheet() *runsheet.Sheet {
	s := storetest.Sheet(0)
	s.Treatments = append(s.Treatments, runsheet.Treatment{Name: "three", Label: "Three", Protocol: "three", Options: map[string]any{}, Port: 5003})
	s.Treatments[0].Protocol, s.Treatments[1].Protocol = "one", "two"
	s.Limits = runsheet.Limits{Connect: time.Second, Transfer: time.Second, Attempts: 1}
	s.Network.Nodes = []radio.Node{{Role: radio.RoleClient, Address: "10.77.0.1"}, {Role: radio.RoleRelay, Address: "10.77.0.2"}, {Role: radio.RoleServer, Address: "10.77.0.3"}}
	s.Stop = &runsheet.Stop{Looks: []int{10, 12}, Alpha: 0.05, Spending: stats.Pocock}
	for i := range 36 {
		name := s.Treatments[i%3].Name
		s.Trials = append(s.Trials, runsheet.Trial{Index: i, Iteration: i/3 + 1, Treatment: name,
			Flows: []runsheet.Flow{{Treatment: name, From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 1000, PayloadSeed: uint64(i)}}})
	}
	return s
}

// What the executor writes of a run that stops by its rule is stored as a whole, nothing of it is
// partial, and the audit of the stored records has no findings.
func TestRunsThatStopByTheirRule(t *testing.T) {
	for name, c := range map[string]struct {
		fails     failing
		notNeeded int
	}{"none": {nil, 0}, "drop": {failing{"two"}, 2}, "stop": {failing{"two", "three"}, 6}} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), storetest.URL(t), nil)
			require.NoError(t, err)
			t.Cleanup(s.Close)
			sheet := stopSheet()
			run := storetest.AddRun(t, s, name, sheet)
			client, sent := ledBy(t, run, sheet, c.fails)
			deliver(t, s, run, "client", client)
			server, relay := storetest.NewJournal(run, radio.RoleServer), storetest.NewJournal(run, radio.RoleRelay)
			server.Begin(sheet)
			relay.Begin(sheet)
			for _, f := range sent {
				server.Add(journal.TypeReceived, journal.Received{Treatment: f.Treatment, Transfer: f.Transfer, Result: &contract.Result{SizeBytes: 1000, ElapsedNS: 9e7, Digest: storetest.Digest}})
			}
			for _, j := range []*storetest.Journal{server, relay} {
				j.Finish(journal.RunCompleted, "")
				deliver(t, s, run, string(j.Role), j.Records)
			}

			r, o, err := s.Run(t.Context(), run)
			require.NoError(t, err)
			require.Equal(t, []int32{36, 36, int32(c.notNeeded)}, []int32{o.Trials, o.TrialsEnded, o.TrialsNotNeeded})
			require.Zero(t, o.EstimatedSecondsLeft)
			require.Len(t, sent, 36-c.notNeeded-int(o.AttemptsFailed))
			stored, err := s.Trials(t.Context(), run)
			require.NoError(t, err)
			a := &audit.Run{ID: run, State: "completed", TrialsEnded: int(o.TrialsEnded), TrialsNotNeeded: int(o.TrialsNotNeeded), AttemptsFailed: int(o.AttemptsFailed),
				SheetHash: o.SheetHash, Records: recordsOf(t, s, run)}
			a.Sheet, err = sheet.Encode()
			require.NoError(t, err)
			for node, n := range map[string]int{"client": len(client), "server": len(server.Records), "relay": len(relay.Records)} {
				a.Parts = append(a.Parts, audit.Part{Node: node, Role: node, Committed: int64(n), Ended: "completed"})
			}
			for i, trial := range r.Trials {
				x := audit.Trial{Trial: i, Iteration: trial.Iteration, Treatment: trial.Treatment, Verdict: string(trial.Verdict), NotNeeded: stored[i].NotNeeded}
				for k := range trial.Attempts {
					y := &trial.Attempts[k]
					x.Attempts = append(x.Attempts, audit.Attempt{Attempt: y.Attempt, Verdict: string(y.Verdict), Reason: y.Reason, Started: y.Started, Rate: y.ThroughputBytesPerSecond()})
				}
				a.Trials = append(a.Trials, x)
			}
			report, err := audit.Audit(a)
			require.NoError(t, err)
			require.Empty(t, failed(report))
			require.Equal(t, audit.Passed, report.Check(audit.Looks).State)
			require.Equal(t, map[string]int{"none": 2, "drop": 2, "stop": 1}[name], report.Check(audit.Looks).Objects)
		})
	}
}

// ledBy is the records of the leading node's journal of a run, and the flows that succeeded.
func ledBy(t *testing.T, run string, sheet *runsheet.Sheet, fails failing) (records [][]byte, sent []journal.FlowResult) {
	t.Helper()
	encoded, err := sheet.Encode()
	require.NoError(t, err)
	j, err := journal.Open(filepath.Join(t.TempDir(), "j"), journal.Identity{Run: run, Node: "client", Role: radio.RoleClient}, journal.Options{ReserveBytes: -1})
	require.NoError(t, err)
	defer j.Close()
	require.NoError(t, executor.Lead(t.Context(), executor.Config{RunID: run, Role: radio.RoleClient, Sheet: encoded, SheetHash: runsheet.Hash(encoded), Journal: j, Runner: fails, Version: "test"}))
	require.NoError(t, j.Records(func(r journal.Record) error {
		b, err := json.Marshal(r)
		records = append(records, b)
		if r.Type == journal.TypeAttemptEnded {
			var e journal.AttemptEnded
			require.NoError(t, json.Unmarshal(r.Body, &e))
			for _, f := range e.Flows {
				if f.Verdict == journal.Succeeded {
					sent = append(sent, f)
				}
			}
		}
		return err
	}))
	return records, sent
}

func deliver(t *testing.T, s *store.Store, run, node string, records [][]byte) {
	t.Helper()
	batch := make([]ingest.Record, len(records))
	for i, b := range records {
		batch[i] = ingest.Record{Seq: int64(i + 1), JSON: b}
	}
	_, err := ingest.New(ingest.Config{Store: s}).Deliver(t.Context(), run, node, batch)
	require.NoError(t, err)
}

// recordsOf reads what the store has of a node's journal.
func recordsOf(t *testing.T, s *store.Store, run string) func(string, bool) iter.Seq2[audit.StoredRecord, error] {
	return func(node string, bodies bool) iter.Seq2[audit.StoredRecord, error] {
		return func(yield func(audit.StoredRecord, error) bool) {
			for after := int64(0); ; {
				page, err := s.Records(t.Context(), run, node, after, bodies)
				require.NoError(t, err)
				if len(page) == 0 {
					return
				}
				for _, r := range page {
					if !yield(audit.StoredRecord{Seq: r.Seq, Type: r.Type, At: r.At, SHA256: [32]byte(r.SHA256), Body: r.Body}, nil) {
						return
					}
					after = r.Seq
				}
			}
		}
	}
}
