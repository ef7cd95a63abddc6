package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"connectrpc.com/connect"

	nodeidentity "linktrial/agents/identity"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/dbsqlc"
	"linktrial/orchestrator/store/synthetic"
	"linktrial/protocols/contract"
)

const (
	tlsRounds  = 3   // of each, in turn: whatever else the machine does hits both
	tlsBatches = 300 // a round
	tlsNode    = "client"
)

// tlsLoads are what a node hands over in one call: nothing, what a second of a
// trial yields, and what a node that was cut off for minutes catches up with.
var tlsLoads = []struct {
	name    string
	samples int
}{{"no journal (clock)", 0}, {"10 samples", 10}, {"1000 samples", 1000}}

// tlsCost is what one orchestrator's calls took.
type tlsCost struct {
	wall      [][]float64 // µs of each call, by load
	processor [][]float64 // µs for each call in a round, both ends
	connect   []float64   // ms of the first call of a connection
}

func benchTLS(ctx context.Context, _ *settings) error {
	fmt.Println("\nDelivery of sample batches with and without TLS (one node, one call after another over the loopback; node and orchestrator in one process, PostgreSQL beside it)")
	// The database's own user must be able to reach it.
	dir, err := os.MkdirTemp("/var/tmp", "linktrial-bench-tls-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	db, err := postgres.Start(ctx, postgres.Config{DataDir: dir})
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if err := db.Stop(stop); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
	}()
	b := &tlsBench{dir: dir, url: db.URL()}
	if err := b.runs(ctx); err != nil {
		return err
	}
	costs := map[bool]*tlsCost{}
	for _, on := range []bool{false, true} {
		costs[on] = &tlsCost{wall: make([][]float64, len(tlsLoads)), processor: make([][]float64, len(tlsLoads))}
	}
	for range tlsRounds {
		for _, on := range []bool{false, true} {
			if err := b.round(ctx, on, costs[on]); err != nil {
				return fmt.Errorf("bench of TLS: %w", err)
			}
		}
	}
	if err := columns("CALL WITH\tPLAIN µs (MEDIAN)\tTLS µs (MEDIAN)\tPLAIN PROCESSOR µs\tTLS PROCESSOR µs\tTLS ADDS, PROCESSOR µs", func(w *tabwriter.Writer) {
		for i, l := range tlsLoads {
			plain, tls := costs[false], costs[true]
			fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%+.0f\n", l.name, median(plain.wall[i]), median(tls.wall[i]),
				median(plain.processor[i]), median(tls.processor[i]), median(tls.processor[i])-median(plain.processor[i]))
		}
	}); err != nil {
		return err
	}
	fmt.Printf("The first call of a connection: plain %.1f ms, TLS with both certificates %.1f ms (medians of %d)\n", median(costs[false].connect), median(costs[true].connect), tlsRounds)
	return nil
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

type tlsBench struct {
	dir, url string
	next     int // run that no round has used
	ids      []string
	sheets   []string // their hashes
}

// runs stores a campaign with a run for each round and load.
func (b *tlsBench) runs(ctx context.Context) error {
	st, err := store.Open(ctx, b.url, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	shape := synthetic.Shape{ID: "benchtls", Iterations: 1, Treatments: 1}
	plan := []byte("name: bench-tls\n")
	return st.InTx(ctx, func(q *dbsqlc.Queries) error {
		if err := q.UpsertNode(ctx, dbsqlc.UpsertNodeParams{Name: tlsNode, Role: string(radio.RoleClient), Emulated: true, Drivers: []byte("[]"), Incarnation: "1"}); err != nil {
			return err
		}
		if err := q.InsertCampaign(ctx, dbsqlc.InsertCampaignParams{ID: shape.ID, Name: "bench-tls", Plan: "bench-tls", PlanFile: "bench-tls.yaml", PlanText: plan, PlanHash: runsheet.Hash(plan)}); err != nil {
			return err
		}
		for i := range 2 * tlsRounds * len(tlsLoads) {
			sheet := shape.Sheet(i)
			encoded, err := sheet.Encode()
			if err != nil {
				return err
			}
			id := fmt.Sprintf("%s-%d", shape.ID, i+1)
			b.ids, b.sheets = append(b.ids, id), append(b.sheets, runsheet.Hash(encoded))
			if err := q.InsertRun(ctx, dbsqlc.InsertRunParams{ID: id, CampaignID: shape.ID, Cell: int32(i), Sheet: encoded, SheetHash: runsheet.Hash(encoded), Radio: sheet.Cell.Radio,
				Topology: sheet.Cell.Topology, SizeBytes: sheet.Cell.SizeBytes, Trials: int32(len(sheet.Trials)), EstimatedSeconds: make([]float64, len(sheet.Trials))}); err != nil {
				return err
			}
			if err := q.InsertRunNode(ctx, dbsqlc.InsertRunNodeParams{RunID: id, Role: string(radio.RoleClient), Node: tlsNode}); err != nil {
				return err
			}
			if _, err := q.InsertTrials(ctx, []dbsqlc.InsertTrialsParams{{RunID: id, Trial: 0, Iteration: 1, Treatment: sheet.Trials[0].Treatment}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// round starts an orchestrator and hands over a run's journal for each load.
func (b *tlsBench) round(ctx context.Context, secure bool, cost *tlsCost) error {
	cat, err := catalog.Load(catalog.Config{})
	if err != nil {
		return err
	}
	s, err := server.Start(ctx, server.Config{Listen: "127.0.0.1:0", DatabaseURL: b.url, DataDir: b.dir, Catalog: cat, Version: version, TLS: secure})
	if err != nil {
		return err
	}
	err = b.deliver(ctx, s, secure, cost)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return errors.Join(err, s.Stop(stop))
}

func (b *tlsBench) deliver(ctx context.Context, s *server.Server, secure bool, cost *tlsCost) error {
	p := new(http.Protocols)
	p.SetHTTP2(secure)
	p.SetUnencryptedHTTP2(!secure)
	tr := &http.Transport{Protocols: p}
	defer tr.CloseIdleConnections()
	if secure {
		tok, _, err := s.Authority().CreateToken(ctx, tlsNode, 0, "bench")
		if err != nil {
			return err
		}
		state, err := os.MkdirTemp(b.dir, "node-")
		if err != nil {
			return err
		}
		id, err := nodeidentity.Enrol(ctx, nodeidentity.Enrolment{Orchestrator: s.URL(), Token: tok, Dir: state})
		if err != nil {
			return err
		}
		tr.TLSClientConfig = id.TLS()
	}
	c := linktrialv1connect.NewAgentServiceClient(&http.Client{Transport: tr}, s.URL(), connect.WithGRPC())
	began := time.Now()
	if _, err := c.Clock(ctx, connect.NewRequest(&linktrialv1.ClockRequest{})); err != nil {
		return err
	}
	cost.connect = append(cost.connect, float64(time.Since(began))/1e6)
	for i, load := range tlsLoads {
		j := &tlsJournal{run: b.ids[b.next], sheet: b.sheets[b.next], transfer: fmt.Sprintf("%032x", b.next), c: c}
		b.next++
		if err := j.begin(ctx); err != nil {
			return err
		}
		used := processorTime()
		for range tlsBatches {
			began := time.Now()
			if err := j.batch(ctx, load.samples); err != nil {
				return err
			}
			cost.wall[i] = append(cost.wall[i], float64(time.Since(began))/1e3)
		}
		cost.processor[i] = append(cost.processor[i], float64(processorTime()-used)/1e3/tlsBatches)
	}
	return nil
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // it cannot fail for this process
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tlsJournal is a node's journal that is handed over as it is written.
type tlsJournal struct {
	run      string
	sheet    string // its hash
	transfer string
	c        linktrialv1connect.AgentServiceClient
	seq      int64
}

func (j *tlsJournal) record(typ journal.Type, body any) (*linktrialv1.JournalRecord, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	j.seq++
	rec, err := json.Marshal(journal.Record{Seq: j.seq, Run: j.run, Node: tlsNode, Role: radio.RoleClient, At: time.Now().UTC(), Type: typ, Body: b})
	return &linktrialv1.JournalRecord{Seq: j.seq, Json: rec}, err
}

func (j *tlsJournal) deliver(ctx context.Context, records ...*linktrialv1.JournalRecord) error {
	res, err := j.c.Deliver(ctx, connect.NewRequest(&linktrialv1.DeliverRequest{Name: tlsNode, RunId: j.run, Records: records}))
	if err != nil {
		return err
	}
	if res.Msg.CommittedSeq != j.seq {
		return fmt.Errorf("run %s: %d records were delivered and %d stored", j.run, j.seq, res.Msg.CommittedSeq)
	}
	return nil
}

func (j *tlsJournal) begin(ctx context.Context) error {
	started, err := j.record(journal.TypeRunStarted, journal.RunStarted{SheetHash: j.sheet, Version: version, Trials: 1})
	if err != nil {
		return err
	}
	attempt, err := j.record(journal.TypeAttemptStarted, journal.AttemptStarted{Trial: 0, Attempt: 1, Iteration: 1, Treatment: "treatment-1", Transfers: []string{j.transfer}})
	if err != nil {
		return err
	}
	return j.deliver(ctx, started, attempt)
}

// batch hands over samples, or reads the clock where there are none.
func (j *tlsJournal) batch(ctx context.Context, samples int) error {
	if samples == 0 {
		_, err := j.c.Clock(ctx, connect.NewRequest(&linktrialv1.ClockRequest{}))
		return err
	}
	body := journal.Samples{Trial: 0, Attempt: 1, Side: "client"}
	for i := range samples {
		acked, rtt := j.seq*1e6+int64(i), int64(150_000)
		body.Samples = append(body.Samples, contract.Sample{ElapsedNS: j.seq*1e12 + int64(i)*1e8, SentBytes: acked + 1000, AckedBytes: &acked, SRTTUS: &rtt})
	}
	rec, err := j.record(journal.TypeSamples, body)
	if err != nil {
		return err
	}
	return j.deliver(ctx, rec)
}
