package server

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"linktrial/internal/quota"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/security/admission"
)

// metrics has a registry of its own, so that several servers fit in one process.
type metrics struct {
	registry   *prometheus.Registry
	deliveries *prometheus.CounterVec
	records    prometheus.Counter
	samples    prometheus.Counter
	late       prometheus.Counter
	seconds    prometheus.Histogram
	calls      *prometheus.CounterVec
	overBound  *prometheus.CounterVec
	own        []prometheus.Collector // all of them but those of every Go program
}

func newMetrics(engine *campaign.Engine, gate *admission.Gate) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "linktrial_deliveries_total",
			Help: "Deliveries of journal records by agents, by outcome: stored (also where all was known), refused, over-bound (the node has stored as much of the run as it may), failed."}, []string{"outcome"}),
		records: prometheus.NewCounter(prometheus.CounterOpts{Name: "linktrial_records_total", Help: "Journal records newly stored."}),
		samples: prometheus.NewCounter(prometheus.CounterOpts{Name: "linktrial_samples_total", Help: "Samples newly stored."}),
		late:    prometheus.NewCounter(prometheus.CounterOpts{Name: "linktrial_late_records_total", Help: "Journal records that came after the end of their journal and count nowhere."}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "linktrial_ingest_seconds", Help: "Time to store a delivery, from its arrival to its commit.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14)}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "linktrial_calls_total", Help: "Calls answered, streams apart, by procedure."}, []string{"procedure"}),
		overBound: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "linktrial_over_bound_total",
			Help: "Calls of nodes that were refused because the node would take more than it may, by bound: journal and late (bytes of a journal, and after its end), certificates (within a day), drivers (in a registration)."}, []string{"bound"}),
	}
	for _, b := range quota.Bounds {
		m.overBound.WithLabelValues(string(b))
	}
	for _, outcome := range []string{"stored", "refused", "over-bound", "failed"} {
		m.deliveries.WithLabelValues(outcome)
	}
	m.register(m.deliveries, m.records, m.samples, m.late, m.seconds, m.calls, m.overBound,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "linktrial_nodes_connected", Help: "Nodes whose agent is connected."},
			func() float64 { return float64(engine.Nodes.Connected()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "linktrial_connections", Help: "Open connections."},
			func() float64 { return float64(gate.Counts().Connections) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "linktrial_connections_closed_total", Help: "Connections on which nobody was known, closed to admit others."},
			func() float64 { return float64(gate.Counts().Closed) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "linktrial_calls_refused_total", Help: "Calls refused because too many were under way."},
			func() float64 { return float64(gate.Counts().Refused) }))
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) register(all ...prometheus.Collector) {
	m.registry.MustRegister(all...)
	m.own = append(m.own, all...)
}

// mostScrapes bounds the scrapes that are answered at a time; more are refused.
const mostScrapes = 4

// handler answers scrapes. What cannot be sent is left out, and the rest is sent.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: mostScrapes})
}

func (m *metrics) stored(d ingest.Delta) {
	m.records.Add(float64(d.Records))
	m.samples.Add(float64(d.Samples))
	m.late.Add(float64(d.Late))
}

// counted counts calls that have been answered. Only procedures that exist get
// so far.
func (m *metrics) counted() connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			res, err := next(ctx, r)
			m.calls.WithLabelValues(r.Spec().Procedure).Inc()
			return res, err
		}
	}
}

func (m *metrics) delivered(outcome string, took time.Duration) {
	m.deliveries.WithLabelValues(outcome).Inc()
	m.seconds.Observe(took.Seconds())
}

func (m *metrics) refused(b quota.Bound) { m.overBound.WithLabelValues(string(b)).Inc() }
