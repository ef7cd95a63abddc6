package server

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/security/admission"
)

// Handler returns what answers requests, for tests that make no connections.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Metric is one of /metrics.
type Metric struct {
	Name, Help string
	Labels     []string
}

// Metrics returns all of /metrics but those of every Go program, in the order in which they
// are registered.
func Metrics() (out []Metric) {
	m := newMetrics(&campaign.Engine{}, &admission.Gate{})
	m.register(&state{})
	for _, c := range m.own {
		described := make(chan *prometheus.Desc, 100)
		c.Describe(described)
		close(described)
		for d := range described {
			out = append(out, asMetric(d.String()))
		}
	}
	return out
}

var descText = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(.+?)", (?:unit: "[^"]*", )?constLabels: \{\}, variableLabels: \{([^}]*)\}`)

// asMetric reads the text of a description, which has no other way to its name.
func asMetric(text string) Metric {
	parts := descText.FindStringSubmatch(text)
	if parts == nil {
		panic("not the text of a metric's description: " + text)
	}
	m := Metric{Name: parts[1], Help: strings.ReplaceAll(parts[2], `\"`, `"`)}
	if parts[3] != "" {
		m.Labels = strings.Split(parts[3], ",")
	}
	return m
}
