package server

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/store"
)

// Bounds of a scrape. A node's name is one of those that were enrolled, and runs are those
// that have not ended; what is beyond is left out and counted.
const (
	mostNodes    = 500
	mostRuns     = 500
	mostReadings = 64  // values of telemetry of each node
	mostLabel    = 128 // bytes of a label's value
	// readLimit is how long a scrape waits for the database. Prometheus waits for 10 s.
	readLimit = 3 * time.Second
	// readAgain is how long scrapes share what was read: several Prometheus servers cost no
	// more than one.
	readAgain = time.Second
)

// gauge is a metric of the state, with the names of its labels.
func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("linktrial_"+name, help, labels, nil)
}

var (
	buildInfo        = gauge("build_info", "1, with the version of the orchestrator.", "version")
	databaseUp       = gauge("database_up", "Whether the database answers: 1, else 0.")
	databaseWritable = gauge("database_writable", "0 where the database answers and takes no changes, for example because its disk is full; else 1.")
	stateRead        = gauge("state_read", "Whether the state of the runs could be read for this scrape: 1, else 0, and metrics of runs are absent.")
	stateReadSeconds = gauge("state_read_seconds", "Time that it took to read the state for this scrape.")
	leftOut          = gauge("left_out", "What this scrape leaves out because it is beyond a bound: nodes (500), runs (500), readings (64 of each node).", "what")
)

// state is read at each scrape: from the store, so that it is right after a restart too,
// and from what nodes reported last.
type state struct {
	store   *store.Store
	engine  *campaign.Engine
	fleet   *fleet.Fleet
	version string
	log     *slog.Logger

	mu   sync.Mutex // held while the store is read
	last *reading
}

// reading is what the store has of the runs that have not ended.
type reading struct {
	at          time.Time
	took        time.Duration
	up          bool
	complete    bool
	counts      map[campaign.State]int64
	runs        []store.RunOverview
	runsLeftOut int
	attempts    map[string]campaign.Attempts
	journals    []campaign.OpenJournal
}

// Describe sends every metric that Collect can send.
func (s *state) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range slices.Concat([]*prometheus.Desc{buildInfo, databaseUp, databaseWritable, stateRead, stateReadSeconds, leftOut}, nodeMetrics, runMetrics) {
		ch <- d
	}
}

// Collect sends what is known now. It takes no lock for longer than it copies what is in
// memory, and asks the store with a limit of time.
func (s *state) Collect(ch chan<- prometheus.Metric) {
	r := s.read()
	e := &exposition{ch: ch, sent: map[string]bool{}}
	e.send(buildInfo, 1, s.version)
	e.send(databaseUp, oneIf(r.up))
	e.send(databaseWritable, oneIf(s.store.Unwritable() == nil))
	e.send(stateRead, oneIf(r.complete))
	e.send(stateReadSeconds, r.took.Seconds())
	nodes, readings := s.sendNodes(e)
	e.send(leftOut, float64(nodes), "nodes")
	e.send(leftOut, float64(readings), "readings")
	e.send(leftOut, float64(r.runsLeftOut), "runs")
	if r.complete {
		s.sendRuns(e, r)
	}
}

// read reads the store, or returns what another scrape has read just now.
func (s *state) read() *reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && time.Since(s.last.at) < readAgain {
		return s.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	began := time.Now()
	r := &reading{up: s.store.Ping(ctx) == nil}
	if r.up {
		if err := r.fill(ctx, s.store.Conn); err != nil {
			s.log.Warn("a scrape of /metrics has no runs", "error", err)
		} else {
			r.complete = true
		}
	}
	r.at, r.took = time.Now(), time.Since(began)
	s.last = r
	return r
}

func (r *reading) fill(ctx context.Context, c store.Conn) (err error) {
	if r.counts, err = campaign.CountRuns(ctx, c); err != nil {
		return err
	}
	if r.runs, err = c.OpenRunOverviews(ctx, mostRuns); err != nil {
		return err
	}
	if r.attempts, err = campaign.OpenAttempts(ctx, c); err != nil {
		return err
	}
	if r.journals, err = campaign.OpenJournals(ctx, c); err != nil {
		return err
	}
	open := int64(0)
	for _, s := range campaign.States {
		if !s.Ended() {
			open += r.counts[s]
		}
	}
	r.runsLeftOut = max(0, int(open)-len(r.runs))
	return nil
}

// exposition is one answer to a scrape.
type exposition struct {
	ch   chan<- prometheus.Metric
	sent map[string]bool // by metric and labels: of two that are the same, Prometheus would take neither
}

// send sends a value. Values of labels can come from nodes and plans: what cannot be one is
// left out of them, and what is long is cut.
func (e *exposition) send(d *prometheus.Desc, value float64, labels ...string) {
	for i, l := range labels {
		l = strings.ToValidUTF8(l, "�")
		if len(l) > mostLabel {
			l = strings.ToValidUTF8(l[:mostLabel], "")
		}
		labels[i] = l
	}
	key := d.String() + "\x00" + strings.Join(labels, "\x00")
	if e.sent[key] {
		return
	}
	e.sent[key] = true
	e.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// timestamp is a moment in seconds since 1970, as Prometheus has them.
func timestamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
