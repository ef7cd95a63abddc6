package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"linktrial/internal/checkkind"
	"linktrial/internal/checkout"
	"linktrial/internal/docpart"
	"linktrial/orchestrator/server"
)

// The document's table has every metric of /metrics, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	var rows [][]string
	for _, m := range server.Metrics() {
		labels := ""
		for _, l := range m.Labels {
			labels += ", `" + l + "`"
		}
		rows = append(rows, []string{"`" + m.Name + "`", strings.TrimPrefix(labels, ", "), strings.TrimSuffix(m.Help, ".")})
	}
	slices.SortStableFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	docpart.Hold(t, "docs/monitoring.md", "metrics", docpart.Table([]string{"metric", "labels", "meaning"}, rows))
}

// The names of metrics follow the conventions of Prometheus: totals of counters, and base
// units as the end of the name.
func TestMetricsAreNamed(t *testing.T) {
	for _, m := range server.Metrics() {
		require.Regexp(t, `^linktrial_[a-z]+(_[a-z]+)*$`, m.Name)
		require.NotRegexp(t, `_(ms|us|ns|kb|mb|kib|mib|percent|bits?|milliseconds)(_|$)`, m.Name)
		require.Equal(t, ".", m.Help[len(m.Help)-1:], m.Name)
	}
}

func monitoringFile(t *testing.T, name string) []byte {
	t.Helper()
	root, err := checkout.Root()
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(root, "monitoring", filepath.FromSlash(name)))
	require.NoError(t, err)
	return b
}

// checkExpression fails where an expression of PromQL does not parse, asks for a metric that
// /metrics does not have, or for a label that the metric does not have. It returns the
// metrics that it asks for.
func checkExpression(t *testing.T, where, text string) (asked []string) {
	t.Helper()
	expression, err := parser.ParseExpr(text)
	require.NoError(t, err, where)
	labels := map[string][]string{"up": {"job", "instance"}}
	for _, m := range server.Metrics() {
		labels[m.Name] = append(m.Labels, "job", "instance")
	}
	of := func(name string) string {
		for _, end := range []string{"_bucket", "_sum", "_count"} { // of histograms
			if h := strings.TrimSuffix(name, end); h != name && labels[h] != nil {
				return h
			}
		}
		return name
	}
	parser.Inspect(expression, func(n parser.Node, _ []parser.Node) error {
		s, is := n.(*parser.VectorSelector)
		if !is {
			return nil
		}
		name := of(s.Name)
		require.Contains(t, labels, name, "%s: %s", where, text)
		asked = append(asked, name)
		for _, m := range s.LabelMatchers {
			if m.Name != "__name__" {
				require.Contains(t, labels[name], m.Name, "%s: %s has no such label", where, s.Name)
			}
		}
		return nil
	})
	require.NotEmpty(t, asked, "%s: %s asks for no metric", where, text)
	return asked
}

// expression is one of a dashboard, with what Grafana would put in the place of its own
// variables of time.
func expression(text string) string { return strings.ReplaceAll(text, "$__rate_interval", "1m") }

type dashboard struct {
	Inputs []struct{ Name string } `json:"__inputs"`
	Panels []struct {
		ID                       int
		Type, Title, Description string
		Datasource               *struct{ UID string }
		GridPos                  struct{ X, Y, W, H int }
		FieldConfig              struct{ Defaults struct{ Unit string } }
		Targets                  []struct{ Expr, LegendFormat, RefID, Format string }
	}
	Templating struct {
		List []struct {
			Name  string
			Query struct{ Query string }
		}
	}
}

// The dashboard asks for metrics and labels that /metrics has; it can be imported with
// anybody's Prometheus; its panels are told apart, explained, and do not overlap.
func TestDashboard(t *testing.T) {
	var d dashboard
	require.NoError(t, json.Unmarshal(monitoringFile(t, "grafana/linktrial.json"), &d))
	require.Equal(t, "DS_PROMETHEUS", d.Inputs[0].Name)
	shown, ids, taken := map[string]bool{}, map[int]bool{}, map[[2]int]string{}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		query := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Query.Query)
		require.NotNil(t, query, v.Query.Query)
		checkExpression(t, "variable "+v.Name, "sum by ("+query[2]+") ("+query[1]+")")
	}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		require.NotEmpty(t, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[at], "%s is over another panel", p.Title)
				require.Less(t, at[0], 24, p.Title)
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
		require.Equal(t, "${DS_PROMETHEUS}", p.Datasource.UID, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, q := range p.Targets {
			require.True(t, q.LegendFormat != "" || q.Format == "table", "%s has a line without a name", p.Title)
			for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
				require.True(t, variables[v[1]], "%s: no variable %s", p.Title, v[0])
			}
			for _, m := range checkExpression(t, p.Title, expression(q.Expr)) {
				shown[m] = true
			}
		}
	}
	require.Greater(t, len(shown), 25)
}

type rules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

// The alert rules ask for what /metrics has, with the bounds of the preflight, and the
// document names each.
func TestAlertRules(t *testing.T) {
	var r rules
	text := monitoringFile(t, "prometheus/rules.yml")
	require.NoError(t, yaml.Unmarshal(text, &r))
	root, err := checkout.Root()
	require.NoError(t, err)
	document, err := os.ReadFile(filepath.Join(root, "docs", "monitoring.md"))
	require.NoError(t, err)
	names := map[string]bool{}
	for _, rule := range r.Groups[0].Rules {
		checkExpression(t, rule.Alert, rule.Expr)
		require.False(t, names[rule.Alert], rule.Alert)
		names[rule.Alert] = true
		require.Contains(t, string(document), "`"+rule.Alert+"`")
		require.Contains(t, []string{"critical", "warning"}, rule.Labels["severity"], rule.Alert)
		require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
	}
	require.Len(t, names, 15)
	for _, bound := range []string{fmt.Sprintf("battery_ratio < %g ", checkkind.LowCharge), fmt.Sprintf("error_seconds > %g\n", checkkind.MaxClockOffset.Seconds()),
		fmt.Sprintf("free_bytes < %d ", checkkind.EnoughDiskBytes)} {
		require.Contains(t, string(text), bound)
	}
}
