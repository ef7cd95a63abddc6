// Package synthetic fills a database with a campaign that nobody ran, as large as
// wanted, to measure reading with: what ingest would have stored of it, but for
// the journal records that no reader of results looks at. There are no pages of journals as
// nodes wrote them: without those records the journals have gaps. Comes in: a database
// with the schema in place, and a [Shape]. Goes out: rows.
package synthetic

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/orchestrator/store"
	"linktrial/protocols/contract"
)

// Shape is how large a campaign is.
type Shape struct {
	ID         string
	Runs       int
	Iterations int
	Treatments int
	Samples    int // of each attempt
	Plan       []byte
	Stored     func(share float64) // nil, or called with the share of all that is stored, 0 to 1
}

// Trials is how many it has.
func (s Shape) Trials() int { return s.Runs * s.Iterations * s.Treatments }

var began = time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)

const sizeBytes = 1 << 20

// Sheet is the run sheet of one of the runs.
func (s Shape) Sheet(run int) *runsheet.Sheet {
	loss := fmt.Sprintf("%.3f", float64(run)/1000)
	sheet := &runsheet.Sheet{
		Format: runsheet.Format, Plan: s.ID, PlanHash: runsheet.Hash(s.Plan), Control: runsheet.ControlOutOfBand, Order: "fixed", Seed: 1,
		Cell: runsheet.Cell{Index: run, Radio: fmt.Sprintf("radio-%d", run%3), Topology: "point-to-point", SizeBytes: sizeBytes, Label: "loss " + loss,
			Settings: []runsheet.Setting{{Axis: "loss", Parameter: "channel.loss", Value: loss, Label: loss}}},
		Radio:    radio.Profile{Name: fmt.Sprintf("radio-%d", run%3), Title: fmt.Sprintf("Radio %d", run%3)},
		Topology: radio.Topology{Name: "point-to-point", Title: "Point to point", Stations: []radio.Station{{Name: "a", Role: radio.RoleClient}, {Name: "b", Role: radio.RoleServer}}},
		Network:  &radio.Network{MTUBytes: 1500, Links: []radio.Link{{A: radio.RoleClient, B: radio.RoleServer, RateBitsPerSecond: 2e6}}},
		Limits:   runsheet.Limits{Connect: 30 * time.Second, Transfer: 5 * time.Minute, Attempts: 2}, SampleInterval: 100 * time.Millisecond,
	}
	for i := range s.Treatments {
		name := fmt.Sprintf("treatment-%d", i+1)
		sheet.Treatments = append(sheet.Treatments, runsheet.Treatment{Name: name, Label: fmt.Sprintf("Treatment %d", i+1), Protocol: "tcp", Options: map[string]any{"congestion": "cubic"}, Port: 5001 + i})
	}
	for it := 1; it <= s.Iterations; it++ {
		for _, t := range sheet.Treatments {
			sheet.Trials = append(sheet.Trials, runsheet.Trial{Index: len(sheet.Trials), Iteration: it, Treatment: t.Name, ChannelSeed: uint64(it)*1_000_003 + uint64(run),
				Flows: []runsheet.Flow{{Treatment: t.Name, From: radio.RoleClient, To: radio.RoleServer, SizeBytes: sizeBytes, PayloadSeed: uint64(len(sheet.Trials))}}})
		}
	}
	return sheet
}

// Fill stores the campaign. The connection's user must be allowed to leave the
// checks of foreign keys out, which take longer than all else.
func Fill(ctx context.Context, conn *pgx.Conn, s Shape) error {
	f := &filler{Shape: s, rng: rand.New(rand.NewPCG(1, 2))}
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL session_replication_role = replica"); err != nil {
			return err
		}
		if err := f.heads(ctx, tx); err != nil {
			return err
		}
		for run := range s.Runs {
			if err := f.store(ctx, tx, run); err != nil {
				return err
			}
			if err := f.samples(ctx, tx, run); err != nil {
				return err
			}
			if s.Stored != nil {
				s.Stored(float64(run+1) / float64(s.Runs))
			}
		}
		// What a trigger does, which replicas do not have.
		_, err := tx.Exec(ctx, `INSERT INTO sample_spans (run_id, first_at, last_at) SELECT run_id, min(at), max(at) FROM samples WHERE run_id LIKE $1 || '-%' GROUP BY run_id`, f.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("fill with a campaign of %d trials: %w", s.Trials(), err)
	}
	// What autovacuum would have done by the time that anybody looks.
	if _, err := conn.Exec(ctx, "VACUUM (ANALYZE) campaigns, runs, run_nodes, trials, attempts, flows, receptions, samples, sample_spans"); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	return nil
}

// filler holds the rows of one run at a time.
type filler struct {
	Shape
	rng                                          *rand.Rand
	trials, attempts, flows, records, receptions [][]any
	seq                                          int64
	begun                                        int // attempts of all runs so far
}

// store makes the rows of a run and stores them.
func (f *filler) store(ctx context.Context, tx pgx.Tx, run int) error {
	f.trials, f.attempts, f.flows, f.records, f.receptions = nil, nil, nil, nil, nil
	if err := f.run(run); err != nil {
		return err
	}
	for _, t := range []struct {
		table   string
		columns []string
		rows    [][]any
	}{
		{"trials", []string{"run_id", "trial", "iteration", "treatment", "verdict"}, f.trials},
		{"attempts", []string{"run_id", "trial", "attempt", "started_seq", "started_at", "ended_seq", "ended_at", "verdict", "reason", "message", "duration_ns", "dead_ns", "radio", "log"}, f.attempts},
		{"flows", []string{"run_id", "trial", "attempt", "flow", "transfer", "verdict", "connect_ns", "size_bytes", "elapsed_ns", "digest", "last_sample"}, f.flows},
		{"journal", []string{"run_id", "node", "seq", "type", "at", "body", "digest"}, f.records},
		{"receptions", []string{"run_id", "node", "seq", "treatment", "transfer", "at", "size_bytes", "elapsed_ns", "digest"}, f.receptions},
	} {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{t.table}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
			return fmt.Errorf("%s: %w", t.table, err)
		}
	}
	return nil
}

// heads stores the campaign, its runs and their nodes.
func (f *filler) heads(ctx context.Context, tx pgx.Tx) error {
	plan := f.Plan
	if plan == nil {
		plan = []byte("name: " + f.ID + "\n")
	}
	if _, err := tx.Exec(ctx, `INSERT INTO campaigns (id, name, plan, plan_file, plan_text, plan_hash, created_at) VALUES ($1, $1, $1, $2, $3, $4, $5)`,
		f.ID, f.ID+".yaml", plan, runsheet.Hash(plan), began); err != nil {
		return err
	}
	for _, role := range []string{"client", "server"} {
		if _, err := tx.Exec(ctx, `INSERT INTO nodes (name, role, version, host, kernel, radio, emulated, radio_address, disk_free_bytes, drivers, incarnation, registered_at, last_contact_at)
			VALUES ($1, $1, 'v', 'h', 'k', 'r', true, '', 0, '[]', '1', $2, $2) ON CONFLICT DO NOTHING`, role, began); err != nil {
			return err
		}
	}
	provenance, err := json.Marshal(journal.Provenance{Host: "h", Kernel: "k", Place: "emulated, real time", Sysctls: map[string]string{"net.ipv4.tcp_sack": "1", "net.ipv4.tcp_ecn": "2"}})
	if err != nil {
		return err
	}
	for run := range f.Runs {
		sheet := f.Sheet(run)
		encoded, err := sheet.Encode()
		if err != nil {
			return err
		}
		estimates := make([]float64, len(sheet.Trials))
		for i := range estimates {
			estimates[i] = 12.5
		}
		row := store.NewRun(f.id(run), f.ID, sheet, encoded, estimates)
		if _, err := tx.Exec(ctx, `INSERT INTO runs (id, campaign_id, cell, state, sheet, sheet_hash, radio, topology, size_bytes, trials, estimated_seconds, treatment_labels, swept, created_at, started_at, ended_at)
			VALUES ($1, $2, $3, 'completed', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14)`,
			row.ID, row.CampaignID, row.Cell, row.Sheet, row.SheetHash, row.Radio, row.Topology, row.SizeBytes, row.Trials, row.EstimatedSeconds, row.TreatmentLabels, row.Swept,
			began, began.Add(time.Hour)); err != nil {
			return err
		}
		for _, role := range []string{"client", "server"} {
			if _, err := tx.Exec(ctx, `INSERT INTO run_nodes (run_id, role, node, committed_seq, ended, provenance) VALUES ($1, $2, $2, 1000, 'completed', $3)`, f.id(run), role, provenance); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *filler) id(run int) string { return fmt.Sprintf("%s-%d", f.ID, run+1) }

// run makes the rows of a run: of a hundred trials, three have a failed attempt
// before the one that counts, and one fails altogether.
func (f *filler) run(run int) error {
	sheet := f.Sheet(run)
	for i := range sheet.Trials {
		t := &sheet.Trials[i]
		chance := f.rng.IntN(100)
		verdict := "succeeded"
		attempt := 1
		if chance < 4 {
			if err := f.attempt(run, t, attempt, "timed-out"); err != nil {
				return err
			}
			attempt++
		}
		if chance == 0 {
			verdict = "timed-out"
		}
		if err := f.attempt(run, t, attempt, verdict); err != nil {
			return err
		}
		f.trials = append(f.trials, []any{f.id(run), t.Index, t.Iteration, t.Treatment, verdict})
	}
	return nil
}

const digest = "00000000000000000000000000000000000000000000000000000000000000ff"

func (f *filler) attempt(run int, t *runsheet.Trial, attempt int, verdict string) error {
	id := f.id(run)
	transfer := runsheet.TransferID(id, t.Index, attempt, 0).String()
	elapsed := time.Duration(float64(5*time.Second) * math.Exp(0.2*f.rng.NormFloat64()) * (1 + float64(t.Index%f.Treatments)/5))
	report, err := json.Marshal(radiocontrol.Report{Duration: elapsed, BusyShare: 0.8, Ideal: []time.Duration{elapsed / 2}, CodedBound: []time.Duration{elapsed / 2 * 10 / 9}, Hops: []radiocontrol.Hop{
		{From: radio.RoleClient, To: radio.RoleServer, SentPackets: 900, SentBytes: 1 << 20, LostPackets: 20, DeliveredPackets: 880},
		{From: radio.RoleServer, To: radio.RoleClient, SentPackets: 450, SentBytes: 1 << 15}},
		Channels: []radiocontrol.ChannelHistory{f.channel(radio.RoleClient, radio.RoleServer), f.channel(radio.RoleServer, radio.RoleClient)}})
	if err != nil {
		return err
	}
	start := began.Add(time.Duration(f.begun) * 10 * time.Second)
	f.begun++
	reason, log := "", ""
	var size, took, sum, last any
	if verdict == "succeeded" {
		retransmits, timeouts := int64(f.rng.IntN(30)), int64(f.rng.IntN(3))
		b, err := json.Marshal(contract.Sample{ElapsedNS: int64(elapsed), SentBytes: sizeBytes, AckedBytes: new(int64(sizeBytes)), CwndBytes: new(int64(64000)), SRTTUS: new(int64(180000)),
			Retransmits: &retransmits, Timeouts: &timeouts})
		if err != nil {
			return err
		}
		size, took, sum, last = int64(sizeBytes), int64(elapsed), digest, string(b)
		f.seq++
		received, err := json.Marshal(journal.Received{Treatment: t.Treatment, Transfer: transfer, Result: &contract.Result{SizeBytes: sizeBytes, ElapsedNS: int64(elapsed), Digest: digest}})
		if err != nil {
			return err
		}
		whole, err := json.Marshal(journal.Record{Seq: f.seq, Run: id, Node: "server", Role: radio.RoleServer, At: start, Type: journal.TypeReceived, Body: received})
		if err != nil {
			return err
		}
		sum := sha256.Sum256(whole)
		f.records = append(f.records, []any{id, "server", f.seq, string(journal.TypeReceived), start, string(received), sum[:]})
		f.receptions = append(f.receptions, []any{id, "server", f.seq, t.Treatment, transfer, start, int64(sizeBytes), int64(elapsed), digest})
	} else {
		reason, log = "transfer-timeout", "the driver's last words\n"
	}
	f.attempts = append(f.attempts, []any{id, t.Index, attempt, int64(2*t.Index + attempt), start, int64(2*t.Index + attempt + 1), start.Add(elapsed), verdict, reason, reason, int64(elapsed), int64(1e7), string(report), log})
	f.flows = append(f.flows, []any{id, t.Index, attempt, 0, transfer, verdict, int64(180 * time.Millisecond), size, took, sum, last})
	return nil
}

// channel is a history of as many moments as an ordinary fading channel has.
func (f *filler) channel(from, to radio.Role) radiocontrol.ChannelHistory {
	h := radiocontrol.ChannelHistory{From: from, To: to}
	at := int64(0)
	for i := range 120 {
		at += int64(20_000 + f.rng.IntN(100_000))
		h.AtUS, h.Loss = append(h.AtUS, at), append(h.Loss, float64(i%2)*0.3)
	}
	return h
}

// samples are made where they are stored: millions of rows would take longer to
// send than to write.
func (f *filler) samples(ctx context.Context, tx pgx.Tx, run int) error {
	_, err := tx.Exec(ctx, `INSERT INTO samples (at, run_id, trial, attempt, flow, side, elapsed_ns, sent_bytes, acked_bytes, cwnd_bytes, ssthresh_bytes, flight_bytes,
			srtt_us, rttvar_us, rto_us, retransmits, timeouts, more)
		SELECT a.started_at + i * interval '100 ms', a.run_id, a.trial, a.attempt, 0, 'client', i * 100000000::bigint, i * 2200::bigint, i * 2100::bigint,
			10000 + (i * 7919 % 50000), 64000, 9000 + (i * 104729 % 40000), 180000 + (i * 31 % 9000), 4000, 400000, i / 20, i / 200,
			CASE WHEN a.trial % 4 = 3 THEN '{"window_packets": 12}'::jsonb END
		FROM attempts a, generate_series(1, $2::integer) i WHERE a.run_id = $1`, f.id(run), f.Samples)
	return err
}
