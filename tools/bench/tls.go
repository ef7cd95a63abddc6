package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"

	nodeidentity "linktrial/agents/identity"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/stats"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/synthetic"
	"linktrial/protocols/contract"
)

const tlsNode = "client"

// tlsLoads are the deliveries of a node in one call: nothing, the samples of one second
// of a trial, and those of some minutes without a control link.
var tlsLoads = []struct {
	name    string
	samples int
	calls   int
}{{"no journal (clock)", 0, 1000}, {"10 samples", 10, 300}, {"1000 samples", 1000, 60}}

func benchTLS(ctx context.Context, s *setting.Settings) error {
	fmt.Println("\nDelivery of sample batches with and without TLS (one node, one call after another over the loopback, in turn without and with; node and orchestrator in one process, PostgreSQL beside it)")
	dir, remove, err := folder("tls")
	if err != nil {
		return err
	}
	defer remove()
	db, err := postgres.Start(ctx, postgres.Config{DataDir: dir})
	if err != nil {
		return err
	}
	defer stop(ctx, db)
	var sides [2]*tlsSide // plain, TLS
	for i, name := range []string{"plain", "tls"} {
		side := &tlsSide{dir: filepath.Join(dir, name), url: db.DatabaseURL("bench_" + name), secure: name == "tls", version: s.Version}
		if err := side.start(ctx, db.URL(), "bench_"+name); err != nil {
			return fmt.Errorf("bench of TLS: %w", err)
		}
		defer stop(ctx, side.server)
		defer side.transport.CloseIdleConnections()
		sides[i] = side
	}
	plain, secure := sides[0], sides[1]
	if err := terminal.Columns("CALL WITH\tCALLS\tPLAIN µs\tTLS µs\tPLAIN, PROCESSOR µs\tTLS, PROCESSOR µs\tTLS ADDS, PROCESSOR µs (MEDIANS)", func(w io.Writer) {
		for i, l := range tlsLoads {
			for _, side := range sides {
				if err = side.begin(ctx, i); err != nil {
					return
				}
			}
			for range l.calls {
				for _, side := range sides {
					if err = side.measure(ctx, l.samples); err != nil {
						return
					}
				}
			}
			fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%+.0f\n", l.name, l.calls, stats.Median(plain.wall), stats.Median(secure.wall),
				stats.Median(plain.processor), stats.Median(secure.processor), stats.Median(secure.processor)-stats.Median(plain.processor))
		}
	}); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("bench of TLS: %w", err)
	}
	fmt.Printf("The first call of a connection: plain %.1f ms, TLS with both certificates %.1f ms\n", plain.connect, secure.connect)
	return nil
}

// tlsSide is an orchestrator with its own database, and one node.
type tlsSide struct {
	dir, url string
	secure   bool
	version  string

	server    *server.Server
	transport *http.Transport
	client    linktrialv1connect.AgentServiceClient
	journals  []*tlsJournal // by load
	current   *tlsJournal
	connect   float64 // ms of the first call

	wall, processor []float64 // µs of each call, both ends
}

func (b *tlsSide) start(ctx context.Context, admin, database string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+database)
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return err
	}
	if err := b.runs(ctx); err != nil {
		return err
	}
	cat, err := catalog.Load(catalog.Config{})
	if err != nil {
		return err
	}
	b.server, err = server.Start(ctx, server.Config{Listen: "127.0.0.1:0", DatabaseURL: b.url, DataDir: b.dir, Catalog: cat, Version: b.version, TLS: b.secure})
	if err != nil {
		return err
	}
	p := new(http.Protocols)
	p.SetHTTP2(b.secure)
	p.SetUnencryptedHTTP2(!b.secure)
	b.transport = &http.Transport{Protocols: p}
	if b.secure {
		tok, _, err := b.server.Authority().CreateToken(ctx, tlsNode, 0, "bench")
		if err != nil {
			return err
		}
		id, err := nodeidentity.Enrol(ctx, nodeidentity.Enrolment{Orchestrator: b.server.URL(), Token: tok, Dir: filepath.Join(b.dir, "node")})
		if err != nil {
			return err
		}
		b.transport.TLSClientConfig = id.TLS()
	}
	b.client = linktrialv1connect.NewAgentServiceClient(&http.Client{Transport: b.transport}, b.server.URL(), connect.WithGRPC())
	began := time.Now()
	if _, err := b.client.Clock(ctx, connect.NewRequest(&linktrialv1.ClockRequest{})); err != nil {
		return err
	}
	b.connect = float64(time.Since(began)) / 1e6
	return nil
}

// runs stores a campaign with a run for each load. The runs have ended, so that the
// orchestrator does nothing for them except to store deliveries.
func (b *tlsSide) runs(ctx context.Context) error {
	st, err := store.Open(ctx, b.url, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	shape := synthetic.Shape{ID: "benchtls", Iterations: 1, Treatments: 1}
	plan := []byte("name: bench-tls\n")
	return st.InTx(ctx, func(tx store.Conn) error {
		if err := tx.UpsertNode(ctx, store.UpsertNodeParams{Name: tlsNode, Role: string(radio.RoleClient), Emulated: true, Drivers: []byte("[]"), Incarnation: "1"}); err != nil {
			return err
		}
		if err := tx.InsertCampaign(ctx, store.InsertCampaignParams{ID: shape.ID, Name: "bench-tls", Plan: "bench-tls", PlanFile: "bench-tls.yaml", PlanText: plan, PlanHash: runsheet.Hash(plan)}); err != nil {
			return err
		}
		for i := range tlsLoads {
			sheet := shape.Sheet(i)
			encoded, err := sheet.Encode()
			if err != nil {
				return err
			}
			j := &tlsJournal{run: fmt.Sprintf("%s-%d", shape.ID, i+1), sheet: runsheet.Hash(encoded), transfer: fmt.Sprintf("%032x", i), version: b.version}
			b.journals = append(b.journals, j)
			if err := tx.InsertRun(ctx, store.NewRun(j.run, shape.ID, sheet, encoded, make([]float64, len(sheet.Trials)))); err != nil {
				return err
			}
			if err := tx.InsertRunNode(ctx, store.InsertRunNodeParams{RunID: j.run, Role: string(radio.RoleClient), Node: tlsNode}); err != nil {
				return err
			}
			if _, err := tx.InsertTrials(ctx, []store.InsertTrialsParams{{RunID: j.run, Trial: 0, Iteration: 1, Treatment: sheet.Trials[0].Treatment}}); err != nil {
				return err
			}
			if _, err := campaigndb.New(tx).SetEnded(ctx, campaigndb.SetEndedParams{ID: j.run, State: "aborted", Message: "bench"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin selects the run of a load.
func (b *tlsSide) begin(ctx context.Context, load int) error {
	b.current, b.wall, b.processor = b.journals[load], nil, nil
	b.current.c = b.client
	return b.current.begin(ctx)
}

func (b *tlsSide) measure(ctx context.Context, samples int) error {
	used, began := processorTime(), time.Now()
	err := b.current.batch(ctx, samples)
	b.wall = append(b.wall, float64(time.Since(began))/1e3)
	b.processor = append(b.processor, float64(processorTime()-used)/1e3)
	return err
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // it cannot fail for this process
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tlsJournal is a node's journal that is delivered while it is written.
type tlsJournal struct {
	run      string
	sheet    string // its hash
	transfer string
	version  string
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
	started, err := j.record(journal.TypeRunStarted, journal.RunStarted{SheetHash: j.sheet, Version: j.version, Trials: 1})
	if err != nil {
		return err
	}
	attempt, err := j.record(journal.TypeAttemptStarted, journal.AttemptStarted{Trial: 0, Attempt: 1, Iteration: 1, Treatment: "treatment-1", Transfers: []string{j.transfer}})
	if err != nil {
		return err
	}
	return j.deliver(ctx, started, attempt)
}

// batch delivers samples, or reads the clock where there are none.
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
