package storetest

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/orchestrator/store"
	"linktrial/protocols/contract"
)

// Roles are the nodes of the test's runs, each named for its role.
var Roles = radio.Roles

// Sheet is a run sheet of the given number of trials, two treatments in turn.
func Sheet(trials int) *runsheet.Sheet {
	s := &runsheet.Sheet{
		Format: runsheet.Format, Plan: "test", PlanHash: "plan", Control: runsheet.ControlOutOfBand, Order: "fixed",
		Cell: runsheet.Cell{Radio: "perfect", Topology: "bench", SizeBytes: 1000},
		Topology: radio.Topology{Name: "bench", Stations: []radio.Station{
			{Name: "a", Role: radio.RoleClient}, {Name: "b", Role: radio.RoleRelay}, {Name: "c", Role: radio.RoleServer}}},
		Network: &radio.Network{MTUBytes: 1500},
		Treatments: []runsheet.Treatment{
			{Name: "one", Label: "One", Protocol: "test", Options: map[string]any{}, Port: 5001},
			{Name: "two", Label: "Two", Protocol: "test", Options: map[string]any{}, Port: 5002}},
		Limits:         runsheet.Limits{Connect: time.Second, Transfer: time.Minute, Attempts: 2},
		SampleInterval: 100 * time.Millisecond,
	}
	for i := range trials {
		name := s.Treatments[i%2].Name
		s.Trials = append(s.Trials, runsheet.Trial{Index: i, Iteration: 1 + i/2, Treatment: name,
			Flows: []runsheet.Flow{{Treatment: name, From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 1000}}})
	}
	return s
}

// AddRun stores a campaign of one run with its three nodes.
func AddRun(t testing.TB, s *store.Store, campaign string, sheet *runsheet.Sheet) (run string) {
	t.Helper()
	return AddRunOf(t, s, campaign, "test", "x", sheet)
}

// AddRunOf is [AddRun] of a plan with a name and a text.
func AddRunOf(t testing.TB, s *store.Store, campaign, plan, text string, sheet *runsheet.Sheet) (run string) {
	t.Helper()
	encoded, err := sheet.Encode()
	must(t, err)
	run = campaign + "-1"
	must(t, s.InTx(t.Context(), func(tx store.Conn) error {
		for _, r := range Roles {
			must(t, tx.UpsertNode(t.Context(), store.UpsertNodeParams{Name: string(r), Role: string(r), Emulated: true, Drivers: []byte("[]"), Incarnation: "1"}))
		}
		must(t, tx.InsertCampaign(t.Context(), store.InsertCampaignParams{ID: campaign, Name: "test", Plan: plan, PlanFile: "test.yaml", PlanText: []byte(text), PlanHash: runsheet.Hash([]byte(text))}))
		must(t, tx.InsertRun(t.Context(), store.NewRun(run, campaign, sheet, encoded, make([]float64, len(sheet.Trials)))))
		for _, r := range Roles {
			must(t, tx.InsertRunNode(t.Context(), store.InsertRunNodeParams{RunID: run, Role: string(r), Node: string(r)}))
		}
		rows := make([]store.InsertTrialsParams, len(sheet.Trials))
		for i, tr := range sheet.Trials {
			rows[i] = store.InsertTrialsParams{RunID: run, Trial: int32(i), Iteration: int32(tr.Iteration), Treatment: tr.Treatment}
		}
		_, err := tx.InsertTrials(t.Context(), rows)
		return err
	}))
	return run
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Journal writes the records that a node's agent would.
type Journal struct {
	Run     string
	Role    radio.Role
	Records [][]byte // from sequence number 1
	at      time.Time
}

// NewJournal begins the journal of the node that is named for its role.
func NewJournal(run string, role radio.Role) *Journal {
	return &Journal{Run: run, Role: role, at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// Add appends a record, 10 ms after the one before.
func (j *Journal) Add(typ journal.Type, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	j.at = j.at.Add(10 * time.Millisecond)
	rec, err := json.Marshal(journal.Record{Seq: int64(len(j.Records) + 1), Run: j.Run, Node: string(j.Role), Role: j.Role, At: j.at, Type: typ, Body: b})
	if err != nil {
		panic(err)
	}
	j.Records = append(j.Records, rec)
}

// LabKey is of the lab that vouches for the test's nodes.
var LabKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// Begin writes what every node's journal begins with.
func (j *Journal) Begin(sheet *runsheet.Sheet) {
	encoded, err := sheet.Encode()
	if err != nil {
		panic(err)
	}
	hash := runsheet.Hash(encoded)
	j.Add(journal.TypeRunStarted, journal.RunStarted{SheetHash: hash, Version: "test", Trials: len(sheet.Trials)})
	const address = "10.77.0.1"
	j.Add(journal.TypeProvenance, journal.Provenance{Host: "host", Kernel: "kernel", Place: journal.PlaceEmulated,
		Lab: &journal.LabProof{LabProof: signature.SignLab(LabKey, journal.LabStatement(j.Run, hash, j.Role, address)), Role: j.Role, Address: address}})
	j.Add(journal.TypeClockOffset, journal.ClockOffset{When: "before", Offset: 2 * time.Millisecond, Error: time.Millisecond})
}

// Listen writes that the listener of every treatment is ready.
func (j *Journal) Listen(sheet *runsheet.Sheet) {
	for _, t := range sheet.Treatments {
		j.Add(journal.TypeListenerReady, journal.Listener{Treatment: t.Name, Port: t.Port, Info: &contract.Info{Implementation: "test"}})
	}
}

// Digest is the digest of the test's payloads.
const Digest = "00000000000000000000000000000000000000000000000000000000000000ff"

// Start writes that an attempt has started.
func (j *Journal) Start(sheet *runsheet.Sheet, trial, attempt int) {
	tr := sheet.Trials[trial]
	j.Add(journal.TypeAttemptStarted, journal.AttemptStarted{Trial: trial, Attempt: attempt, Iteration: tr.Iteration, Treatment: tr.Treatment, Transfers: []string{transfer(j.Run, trial, attempt)}})
}

// Samples writes a batch of n samples of the attempt.
func (j *Journal) Samples(trial, attempt, n int) {
	b := journal.Samples{Trial: trial, Attempt: attempt, Side: "client"}
	for i := range n {
		acked, rtt := int64(10*i), int64(1500)
		b.Samples = append(b.Samples, contract.Sample{ElapsedNS: int64(i+1) * 1e8, SentBytes: int64(10 * (i + 1)), AckedBytes: &acked, SRTTUS: &rtt})
	}
	j.Add(journal.TypeSamples, b)
}

// End writes that the attempt has ended; a success took a second.
func (j *Journal) End(sheet *runsheet.Sheet, trial, attempt int, v journal.Verdict) {
	tr := sheet.Trials[trial]
	f := journal.FlowResult{Treatment: tr.Treatment, Transfer: transfer(j.Run, trial, attempt), Verdict: v}
	e := journal.AttemptEnded{Trial: trial, Attempt: attempt, Iteration: tr.Iteration, Treatment: tr.Treatment, Verdict: v, Duration: 1200 * time.Millisecond, Dead: 10 * time.Millisecond}
	if v == journal.Succeeded {
		again, sent, resent, least := int64(3), int64(1400), int64(376), int64(1000)
		f.ConnectNS = 5e7
		f.RTT = &journal.RoundTrips{MeanUS: 2500.5, LeastUS: &least}
		f.Result = &contract.Result{SizeBytes: 1000, ElapsedNS: 1e9, ConnectNS: 5e7, Digest: Digest, Final: &contract.Sample{ElapsedNS: 1e9, SentBytes: 1000, Retransmits: &again, TransmittedBytes: &sent, RetransmittedBytes: &resent}}
	} else {
		e.Reason, e.Message, e.Log = "reset", "the peer went away", "log\x00with a zero byte"
		f.Reason, f.Message = e.Reason, e.Message
	}
	e.Flows = []journal.FlowResult{f}
	j.Add(journal.TypeAttemptEnded, e)
}

// EndTrial writes that a trial has ended.
func (j *Journal) EndTrial(trial, attempts int, v journal.Verdict) {
	j.Add(journal.TypeTrialEnded, journal.TrialEnded{Trial: trial, Attempts: attempts, Verdict: v})
}

// Received writes the server's word on an attempt's transfer.
func (j *Journal) Received(treatment string, trial, attempt int) {
	j.Add(journal.TypeReceived, journal.Received{Treatment: treatment, Transfer: transfer(j.Run, trial, attempt), Result: &contract.Result{SizeBytes: 1000, ElapsedNS: 9e8, Digest: Digest}})
}

// Finish writes that the node's part has ended.
func (j *Journal) Finish(end journal.RunEnd, reason string) {
	j.Add(journal.TypeRunEnded, journal.RunEnded{End: end, Reason: reason})
}

func transfer(run string, trial, attempt int) string {
	return runsheet.TransferID(run, trial, attempt, 0).String()
}

// Lead writes a client's whole journal: every third trial fails at first.
func Lead(run string, sheet *runsheet.Sheet, samples int) *Journal {
	j := NewJournal(run, radio.RoleClient)
	j.Begin(sheet)
	for i := range sheet.Trials {
		attempt := 1
		if i%3 == 0 {
			j.Start(sheet, i, 1)
			j.End(sheet, i, 1, journal.Failed)
			attempt = 2
		}
		j.Start(sheet, i, attempt)
		j.Add(journal.TypeConnected, journal.Connected{Trial: i, Attempt: attempt, ConnectNS: 5e7})
		j.Samples(i, attempt, samples)
		j.End(sheet, i, attempt, journal.Succeeded)
		j.EndTrial(i, attempt, journal.Succeeded)
	}
	j.Finish(journal.RunCompleted, "")
	return j
}

// Serve writes the server's whole journal of a run that [Lead] led.
func Serve(run string, sheet *runsheet.Sheet) *Journal {
	j := NewJournal(run, radio.RoleServer)
	j.Begin(sheet)
	j.Listen(sheet)
	for i, tr := range sheet.Trials {
		attempt := 1
		if i%3 == 0 {
			attempt = 2
		}
		j.Received(tr.Treatment, i, attempt)
	}
	j.Finish(journal.RunCompleted, "")
	return j
}

// String names the journal in failures.
func (j *Journal) String() string {
	return fmt.Sprintf("%s's journal of %d records", j.Role, len(j.Records))
}

// Step has the node's clock step.
func (j *Journal) Step(by time.Duration) {
	j.at = j.at.Add(by)
	j.Add(journal.TypeClockStepped, journal.ClockStepped{By: by, Within: time.Second})
}

// Stepped has the node's clock step after n records that are there already.
func (j *Journal) Stepped(n int, by time.Duration) {
	old := j.Records[n:]
	j.Records = j.Records[:n:n]
	for i, b := range old {
		var r journal.Record
		if err := json.Unmarshal(b, &r); err != nil {
			panic(err)
		}
		if i == 0 {
			j.at = r.At.Add(by - 10*time.Millisecond)
			j.Add(journal.TypeClockStepped, journal.ClockStepped{By: by, Within: time.Second})
		}
		r.Seq, r.At = r.Seq+1, r.At.Add(by)
		b, err := json.Marshal(r)
		if err != nil {
			panic(err)
		}
		j.Records, j.at = append(j.Records, b), r.At
	}
}

// Pass lets time pass before the next record.
func (j *Journal) Pass(d time.Duration) { j.at = j.at.Add(d) }
