package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/internal/radiocontrol"
	"linktrial/orchestrator/downsample"
	"linktrial/orchestrator/rpc/results/resultsdb"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/telemetry"
	"linktrial/protocols/contract"
)

const (
	defaultPoints = 600
	maxPoints     = 20_000
	// maxMore bounds the columns that only one protocol has.
	maxMore = 64
)

func (s *Service) Series(ctx context.Context, req *connect.Request[linktrialv1.SeriesRequest]) (*connect.Response[linktrialv1.SeriesResponse], error) {
	out, err := s.series(ctx, req.Msg)
	if err != nil {
		return nil, s.answer(ctx, "series", err)
	}
	return connect.NewResponse(out), nil
}

func (s *Service) series(ctx context.Context, m *linktrialv1.SeriesRequest) (*linktrialv1.SeriesResponse, error) {
	if m.MaxPoints < 0 || m.MaxPoints > maxPoints {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%d points, expected 0 to %d", m.MaxPoints, maxPoints))
	}
	whole := m.FromSeconds == 0 && m.ToSeconds == 0
	if !whole && !(m.FromSeconds >= 0 && m.FromSeconds < m.ToSeconds && m.ToSeconds < 1e9) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("from %v to %v seconds, expected a time and a later one", m.FromSeconds, m.ToSeconds))
	}
	run, err := s.run(ctx, m.RunId)
	if err != nil {
		return nil, err
	}
	var trials []store.Trial
	if m.Iteration != 0 {
		trials, err = s.iteration(ctx, run, m.Iteration)
	} else {
		trials = make([]store.Trial, 1)
		trials[0], err = s.trial(ctx, run, m.Trial)
	}
	if err != nil {
		return nil, err
	}
	x := &seriesReader{st: s.cfg.Store, run: run, points: int(m.MaxPoints), from: 0, to: math.MaxInt64, out: &linktrialv1.SeriesResponse{}}
	if x.points == 0 {
		x.points = defaultPoints
	}
	if !whole {
		x.from, x.to = time.Duration(m.FromSeconds*1e9), time.Duration(m.ToSeconds*1e9)
	}
	parts, err := s.parts(ctx, run, trials)
	if err != nil {
		return nil, err
	}
	for i := range trials {
		p := parts[trials[i].Trial]
		a, err := p.attempt(m.Attempt)
		if err != nil {
			if m.Iteration != 0 {
				continue // of an iteration, what has begun
			}
			return nil, fmt.Errorf("run %s, trial %d: %w", run.id, trials[i].Trial, err)
		}
		if err := x.attempt(ctx, &trials[i], a, p.flows[a.Attempt], m.Iteration != 0); err != nil {
			return nil, fmt.Errorf("run %s, trial %d, attempt %d: %w", run.id, a.Trial, a.Attempt, err)
		}
		if m.Iteration == 0 {
			if x.out.Telemetry, err = x.telemetry(ctx, a); err != nil {
				return nil, fmt.Errorf("run %s, trial %d, attempt %d: %w", run.id, a.Trial, a.Attempt, err)
			}
		}
		if m.Iteration == 0 && a.Radio != nil {
			if x.out.Channels, err = channels(a.Radio); err != nil {
				return nil, fmt.Errorf("run %s, trial %d, attempt %d: %w", run.id, a.Trial, a.Attempt, err)
			}
		}
	}
	return x.out, nil
}

// runRef is a run with its sheet.
type runRef struct {
	id    string
	sheet *runsheet.Sheet
}

func (s *Service) run(ctx context.Context, name string) (*runRef, error) {
	id, _, err := s.cfg.Store.FindRun(ctx, name)
	if err != nil {
		return nil, err
	}
	hash, err := s.cfg.Store.SheetHash(ctx, id)
	if err != nil {
		return nil, err
	}
	sheet, err := s.cfg.Store.Sheet(ctx, id, hash)
	if err != nil {
		return nil, err
	}
	return &runRef{id, sheet}, nil
}

func (s *Service) trial(ctx context.Context, run *runRef, trial int32) (store.Trial, error) {
	t, err := s.cfg.Store.Trial(ctx, store.TrialParams{RunID: run.id, Trial: trial})
	if errors.Is(err, pgx.ErrNoRows) {
		return t, fmt.Errorf("run %s has trials 0 to %d, trial %d: %w", run.id, len(run.sheet.Trials)-1, trial, store.ErrNotFound)
	}
	return t, err
}

// iteration is the trials of one, one of each treatment.
func (s *Service) iteration(ctx context.Context, run *runRef, iteration int32) ([]store.Trial, error) {
	trials, err := s.cfg.Store.TrialsOfIteration(ctx, store.TrialsOfIterationParams{RunID: run.id, Iteration: iteration})
	if err != nil {
		return nil, err
	}
	if len(trials) == 0 {
		return nil, fmt.Errorf("run %s has iterations 1 to %d, iteration %d: %w", run.id, run.sheet.Iterations(), iteration, store.ErrNotFound)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(trials, func(t store.Trial) bool {
		again := seen[t.Treatment]
		seen[t.Treatment] = true
		return again
	}), nil
}

// parts are the attempts of a trial, each with its flows.
type parts struct {
	attempts []store.Attempt
	flows    map[int32][]store.Flow
}

func (s *Service) parts(ctx context.Context, run *runRef, trials []store.Trial) (map[int32]*parts, error) {
	var places []int32
	out := map[int32]*parts{}
	for _, t := range trials {
		places = append(places, t.Trial)
		out[t.Trial] = &parts{flows: map[int32][]store.Flow{}}
	}
	err := s.cfg.Store.Snapshot(ctx, func(tx store.Conn) error {
		attempts, err := tx.AttemptsOfTrials(ctx, store.AttemptsOfTrialsParams{RunID: run.id, Trials: places})
		if err != nil {
			return err
		}
		for _, a := range attempts {
			out[a.Trial].attempts = append(out[a.Trial].attempts, a)
		}
		flows, err := tx.FlowsOfTrials(ctx, store.FlowsOfTrialsParams{RunID: run.id, Trials: places})
		if err != nil {
			return err
		}
		var transfers []string
		for _, f := range flows {
			transfers = append(transfers, f.Transfer)
		}
		receptions, err := tx.ReceptionsOfTransfers(ctx, store.ReceptionsOfTransfersParams{RunID: run.id, Transfers: transfers})
		if err != nil {
			return err
		}
		received := store.Received(receptions)
		for _, f := range flows {
			p := out[f.Trial]
			p.flows[f.Attempt] = append(p.flows[f.Attempt], store.NewFlow(f, received))
		}
		return nil
	})
	return out, err
}

// attempt is the one of that number, or the last for 0: the one that counts.
func (p *parts) attempt(number int32) (*store.Attempt, error) {
	n := len(p.attempts)
	if n == 0 {
		return nil, fmt.Errorf("it has not begun: %w", store.ErrNotFound)
	}
	if number == 0 {
		return &p.attempts[n-1], nil
	}
	if k := slices.IndexFunc(p.attempts, func(a store.Attempt) bool { return a.Attempt == number }); k >= 0 {
		return &p.attempts[k], nil
	}
	return nil, fmt.Errorf("it has attempts 1 to %d, attempt %d: %w", p.attempts[n-1].Attempt, number, store.ErrNotFound)
}

// seriesReader gathers the series of attempts.
type seriesReader struct {
	st       *store.Store
	run      *runRef
	points   int
	from, to time.Duration // after the trial's start
	out      *linktrialv1.SeriesResponse
}

func (x *seriesReader) attempt(ctx context.Context, t *store.Trial, a *store.Attempt, flows []store.Flow, clientOnly bool) error {
	list, err := resultsdb.New(x.st).SeriesOfAttempt(ctx, resultsdb.SeriesOfAttemptParams{RunID: a.RunID, Trial: a.Trial, Attempt: a.Attempt})
	if err != nil {
		return err
	}
	specs := x.run.sheet.Trials[t.Trial].Carried()
	for _, of := range list {
		if clientOnly && of.Side != "client" {
			continue
		}
		f := &linktrialv1.FlowSeries{Trial: a.Trial, Attempt: a.Attempt, Flow: of.Flow, Side: of.Side, Treatment: t.Treatment}
		offset := time.Duration(0)
		if int(of.Flow) < len(specs) {
			f.Treatment, offset = specs[of.Flow].Treatment, specs[of.Flow].Start
		}
		if k := slices.IndexFunc(flows, func(f store.Flow) bool { return f.Flow.Flow == of.Flow }); k >= 0 && flows[k].ConnectNs != nil {
			offset += time.Duration(*flows[k].ConnectNs)
		}
		f.Label, f.OffsetSeconds = x.run.sheet.Label(f.Treatment), offset.Seconds()
		if err := x.flow(ctx, f, offset); err != nil {
			return err
		}
		x.out.Flows = append(x.out.Flows, f)
	}
	return nil
}

func (x *seriesReader) flow(ctx context.Context, f *linktrialv1.FlowSeries, offset time.Duration) error {
	of := store.SeriesWindowParams{RunID: x.run.id, Trial: f.Trial, Attempt: f.Attempt, Flow: f.Flow, Side: f.Side, FromNs: int64(max(0, x.from-offset)), ToNs: int64(x.to - offset)}
	window, err := x.st.SeriesWindow(ctx, of)
	if err != nil || window.Samples == 0 {
		return err
	}
	c := &sampleColumns{thin: downsample.New(float64(window.FirstNs)/1e9, float64(window.LastNs)/1e9, window.Samples, x.points), begins: of.FromNs == 0, values: seriesMetrics()}
	if err := x.st.EachSample(ctx, of, window, c.add); err != nil {
		return err
	}
	if c.samples == 0 { // dropped since the window was looked at
		return nil
	}
	c.fill(f)
	x.out.Samples += c.thin.Samples()
	x.out.Thinned = x.out.Thinned || c.thin.Reduced()
	return nil
}

// seriesMetrics are the columns that samples of every protocol have: all
// metrics but the time, over which they are drawn.
func seriesMetrics() []contract.Metric {
	return slices.DeleteFunc(slices.Clone(contract.Metrics), func(f contract.Metric) bool { return f.Name == contract.ElapsedNS })
}

// throughput is the one column that is computed.
var throughput = contract.Metric{Name: "throughput", Unit: "B/s", Kind: contract.Gauge}

// sampleColumns turns samples into columns: the throughput, the metrics, and
// what only this protocol has.
type sampleColumns struct {
	thin   *downsample.Series
	begins bool // the first sample is the flow's first
	values []contract.Metric
	row    []float64
	more   []string // names of the columns after the metrics

	samples     int
	before, now passed // the last two samples
}

// passed is how much had passed by the time of a sample.
type passed struct{ at, sent, acked float64 }

func (c *sampleColumns) add(s *store.Sample) error {
	at := float64(s.Metrics.ElapsedNS) / 1e9
	c.row = append(c.row[:0], c.rate(at, &s.Metrics))
	for i := range c.values {
		c.row = append(c.row, c.values[i].Value(&s.Metrics))
	}
	if s.More != nil {
		var more map[string]float64
		if err := json.Unmarshal(s.More, &more); err != nil {
			return fmt.Errorf("sample at %v s: %w", at, err)
		}
		for name := range more {
			if !slices.Contains(c.more, name) && len(c.more) < maxMore {
				c.more = append(c.more, name)
			}
		}
		for _, name := range c.more {
			x, known := more[name]
			if !known {
				x = math.NaN()
			}
			c.row = append(c.row, x)
		}
	}
	c.thin.Add(at, c.row)
	return nil
}

// rate is the throughput since the sample before, in bytes per second: of what
// was acknowledged where the protocol knows that, else of what was sent. A sample that
// follows on the one before at once, as the last of a transfer may, has the rate since
// the one before that: what a moment brought is not what the path carries.
func (c *sampleColumns) rate(at float64, s *contract.Sample) float64 {
	x := passed{at, float64(s.SentBytes), c.now.acked}
	if s.AckedBytes != nil {
		x.acked = float64(*s.AckedBytes)
	}
	if c.samples == 0 && !c.begins { // what came before is not known
		c.now = x
	}
	since := c.now
	if x.at-c.now.at < (c.now.at-c.before.at)/2 {
		since = c.before
	}
	rate := math.NaN()
	if d := x.at - since.at; d > 0 && x.at > c.now.at {
		if rate = (x.sent - since.sent) / d; s.AckedBytes != nil {
			rate = (x.acked - since.acked) / d
		}
	}
	c.samples++
	c.before, c.now = c.now, x
	return rate
}

// fill leaves out the columns of which the protocol knows no value.
func (c *sampleColumns) fill(f *linktrialv1.FlowSeries) {
	at, columns := c.thin.Columns()
	f.At = at
	measured := append([]contract.Metric{throughput}, c.values...)
	for i, values := range columns {
		if !slices.ContainsFunc(values, func(x float64) bool { return !math.IsNaN(x) }) {
			continue
		}
		column := &linktrialv1.Column{Values: values}
		if i < len(measured) {
			column.Name, column.Unit, column.Kind = measured[i].Name, measured[i].Unit, string(measured[i].Kind)
		} else {
			column.Name = c.more[i-len(measured)]
		}
		f.Columns = append(f.Columns, column)
	}
}

// telemetry is what radios told during an attempt.
func (x *seriesReader) telemetry(ctx context.Context, a *store.Attempt) ([]*linktrialv1.TelemetrySeries, error) {
	of := telemetry.Attempt{Run: x.run.id, Start: a.StartedAt, MaxPoints: x.points}
	if a.EndedAt != nil {
		of.End = *a.EndedAt
	}
	return telemetry.Series(ctx, x.st.Conn, of)
}

// channels are the histories in an emulated radio's report.
func channels(report json.RawMessage) ([]*linktrialv1.ChannelSeries, error) {
	var r struct {
		Channels []radiocontrol.ChannelHistory `json:"channels"`
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return nil, fmt.Errorf("radio's report: %w", err)
	}
	var out []*linktrialv1.ChannelSeries
	for _, h := range r.Channels {
		c := &linktrialv1.ChannelSeries{From: string(h.From), To: string(h.To), StepSeconds: h.Step.Seconds(), Loss: h.Loss, BitErrorRate: h.BitErrorRate, RateBps: h.RateBitsPerSecond}
		for _, us := range h.AtUS {
			c.At = append(c.At, float64(us)/1e6)
		}
		for _, us := range h.DelayUS {
			c.DelayMs = append(c.DelayMs, float64(us)/1e3)
		}
		out = append(out, c)
	}
	return out, nil
}
