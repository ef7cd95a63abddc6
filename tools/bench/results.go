package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/stats"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/synthetic"
)

// resultsShapes are the campaigns of the measurement: 10 000 trials in ten runs, with
// 5 million samples, and as many in the 500 runs of a sweep.
var resultsShapes = []synthetic.Shape{
	{ID: "tenruns", Runs: 10, Iterations: 250, Treatments: 4, Samples: 500},
	{ID: "sweep", Runs: 500, Iterations: 5, Treatments: 4, Samples: 5},
}

const (
	resultsStarts = 5  // of the orchestrator: first calls
	resultsCalls  = 10 // after each first one
)

func benchResults(ctx context.Context, s *setting.Settings) error {
	dir, remove, err := folder("results")
	if err != nil {
		return err
	}
	defer remove()
	db, err := postgres.Start(ctx, postgres.Config{DataDir: dir})
	if err != nil {
		return err
	}
	defer stop(ctx, db)
	if err := fillResults(ctx, db.URL()); err != nil {
		return err
	}
	return terminal.Columns("CALL\tCAMPAIGN\tFIRST ms (MEDIAN)\tTHEN ms (MEDIAN)\tWORST ms\tANSWER KB", func(w io.Writer) {
		for _, c := range resultsBenchCalls() {
			if err = c.measure(ctx, w, db.URL(), s.Version); err != nil {
				return
			}
		}
	})
}

func fillResults(ctx context.Context, url string) error {
	st, err := store.Open(ctx, url, nil)
	if err != nil {
		return err
	}
	st.Close()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	trials, samples := 0, 0
	began := time.Now()
	for _, s := range resultsShapes {
		if err := synthetic.Fill(ctx, conn, s); err != nil {
			return err
		}
		trials += s.Trials()
		samples += s.Trials() * s.Samples
	}
	fmt.Printf("\nThe results service, over HTTP (%d trials and more than %d samples stored in %.0f s)\n", trials, samples, time.Since(began).Seconds())
	return nil
}

type resultsCall struct {
	name, campaign string
	call           func(context.Context, linktrialv1connect.ResultServiceClient, int) (proto.Message, error)
}

func resultsBenchCalls() []resultsCall {
	var calls []resultsCall
	add := func(name, campaign string, call func(context.Context, linktrialv1connect.ResultServiceClient, int) (proto.Message, error)) {
		calls = append(calls, resultsCall{name, campaign, call})
	}
	add("campaigns", "all", func(ctx context.Context, c linktrialv1connect.ResultServiceClient, _ int) (proto.Message, error) {
		return answered(c.ListCampaigns(ctx, connect.NewRequest(&linktrialv1.ListCampaignsRequest{})))
	})
	for _, s := range resultsShapes {
		add("summary with every attempt", s.ID, func(ctx context.Context, c linktrialv1connect.ResultServiceClient, _ int) (proto.Message, error) {
			return answered(c.Summarize(ctx, connect.NewRequest(&linktrialv1.SummarizeRequest{Ids: []string{s.ID}, Points: true})))
		})
		add("curves over an axis", s.ID, func(ctx context.Context, c linktrialv1connect.ResultServiceClient, _ int) (proto.Message, error) {
			return answered(c.Sweep(ctx, connect.NewRequest(&linktrialv1.SweepRequest{CampaignId: s.ID})))
		})
		run := s.ID + "-7"
		add("series of an attempt", s.ID, func(ctx context.Context, c linktrialv1connect.ResultServiceClient, n int) (proto.Message, error) {
			return answered(c.Series(ctx, connect.NewRequest(&linktrialv1.SeriesRequest{RunId: run, Trial: int32(n), MaxPoints: 1500})))
		})
		add("series of an iteration", s.ID, func(ctx context.Context, c linktrialv1connect.ResultServiceClient, n int) (proto.Message, error) {
			return answered(c.Series(ctx, connect.NewRequest(&linktrialv1.SeriesRequest{RunId: run, Iteration: int32(1 + n%5)})))
		})
		add("all of an attempt", s.ID, func(ctx context.Context, c linktrialv1connect.ResultServiceClient, n int) (proto.Message, error) {
			return answered(c.GetAttempt(ctx, connect.NewRequest(&linktrialv1.GetAttemptRequest{RunId: run, Trial: int32(n)})))
		})
	}
	return calls
}

func answered[T any, M interface {
	*T
	proto.Message
}](res *connect.Response[T], err error) (proto.Message, error) {
	if err != nil {
		return nil, err
	}
	return M(res.Msg), nil
}

// measure measures first calls, of freshly started orchestrators, and repeated calls.
func (c *resultsCall) measure(ctx context.Context, w io.Writer, url, version string) error {
	var first, then []float64
	size := 0
	for range resultsStarts {
		times, bytes, err := c.once(ctx, url, version)
		if err != nil {
			return err
		}
		size = bytes
		first, then = append(first, times[0]), append(then, times[1:]...)
	}
	fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%.1f\t%.0f\n", c.name, c.campaign, stats.Median(first), stats.Median(then), max(slices.Max(first), slices.Max(then)), float64(size)/1024)
	return nil
}

// once starts an orchestrator, calls it several times, and ends it. It returns the
// times of the calls in milliseconds and the size of the last answer in bytes.
func (c *resultsCall) once(ctx context.Context, url, version string) (times []float64, size int, err error) {
	cat, err := catalog.Load(catalog.Config{})
	if err != nil {
		return nil, 0, err
	}
	s, err := server.Start(ctx, server.Config{Listen: "127.0.0.1:0", DatabaseURL: url, Catalog: cat, Version: version})
	if err != nil {
		return nil, 0, err
	}
	defer stop(ctx, s)
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	service := linktrialv1connect.NewResultServiceClient(h, "http://"+s.Addr())
	for n := range 1 + resultsCalls {
		began := time.Now()
		m, err := c.call(ctx, service, n)
		if err != nil {
			return nil, 0, err
		}
		times, size = append(times, float64(time.Since(began))/1e6), proto.Size(m)
	}
	return times, size, nil
}
