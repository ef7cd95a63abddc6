package plan_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
)

// Requirements are resolved for every run and each treatment, and are part of its sheet.
func TestRequire(t *testing.T) {
	text, err := os.ReadFile("testdata/require.yaml")
	require.NoError(t, err)
	p, err := plan.Parse(nil, "require.yaml", text, testCatalog(t))
	require.NoError(t, err)
	sheets, err := sheet.Compile(nil, p)
	require.NoError(t, err)
	require.Len(t, sheets, 3)
	require.Equal(t, []runsheet.Requirement{
		{Entry: 1, Metric: runsheet.MetricAverage, Treatment: "haul", AtLeast: float(30)},
		{Entry: 2, Metric: runsheet.MetricDelivered, Treatment: "cubic", By: 2 * time.Minute, AtLeast: float(0.95)},
		{Entry: 2, Metric: runsheet.MetricDelivered, Treatment: "haul", By: 2 * time.Minute, AtLeast: float(0.95)},
		{Entry: 3, Metric: runsheet.MetricIdeal, Treatment: "haul", AtLeast: float(0.6)},
		{Entry: 4, Metric: runsheet.MetricCodedBound, Treatment: "haul", AtLeast: float(0.65)},
		{Entry: 5, Metric: runsheet.MetricFailures, Treatment: "cubic", AtMost: float(0.05)},
		{Entry: 5, Metric: runsheet.MetricFailures, Treatment: "reno", AtMost: float(0.05)},
		{Entry: 5, Metric: runsheet.MetricFailures, Treatment: "haul", AtMost: float(0.05)},
		{Entry: 6, Metric: runsheet.MetricRatioTo, Treatment: "haul", Reference: "cubic", AtLeast: float(1.1)},
		{Entry: 7, Metric: runsheet.MetricRatioTo, Treatment: "haul", Reference: "reno", AtLeast: float(0.95)},
		{Entry: 8, Metric: runsheet.MetricRatioTo, Treatment: "cubic", Reference: "reno", AtLeast: float(0.95), AtMost: float(1.05)},
	}, sheets[0].Require)
	// Entry 2 is on the other radio alone.
	require.Equal(t, slices.DeleteFunc(slices.Clone(sheets[0].Require), func(r runsheet.Requirement) bool { return r.Entry == 2 }), sheets[1].Require)
	require.Equal(t, []runsheet.Requirement{
		{Entry: 9, Metric: runsheet.MetricDelayP95, Probe: "voice", From: radio.RoleClient, Treatment: "haul", AtMost: float(200)},
		{Entry: 9, Metric: runsheet.MetricDelayP95, Probe: "voice", From: radio.RoleClient, AtMost: float(200)},
		{Entry: 10, Metric: runsheet.MetricLoss, Probe: "voice", From: radio.RoleClient, Treatment: "haul", AtMost: float(0.02)},
	}, sheets[2].Require)
	require.Equal(t, []string{
		"Voice from the client, beside Haul: 95th percentile of the delay, at most 200 ms",
		"Voice from the client, alone: 95th percentile of the delay, at most 200 ms",
		"Voice from the client, beside Haul: loss, at most 2 %",
	}, sheets[2].Required())
	require.Equal(t, []string{
		"Haul: average, at least 30 KB/s",
		"TCP CUBIC: delivered by 120 s, at least 95 %",
		"TCP CUBIC: throughput, 95 to 105 % of that of TCP Reno",
	}, []string{sheets[0].Required()[0], sheets[0].Required()[1], sheets[0].Required()[10]})
	for _, s := range sheets {
		encoded, err := s.Encode()
		require.NoError(t, err)
		back, err := runsheet.Decode(encoded)
		require.NoError(t, err)
		require.Equal(t, s.Require, back.Require)
	}
	sheets[0].Require = nil
	encoded, err := sheets[0].Encode()
	require.NoError(t, err)
	require.False(t, strings.Contains(string(encoded), `"require":`), "a sheet without requirements keeps its bytes")
}

const requiring = `name: requiring
topology: vip-lot
treatments:
  - {name: cubic, protocol: tcp}
  - {name: haul, protocol: haul}
  - {name: voice, protocol: probe, options: {pattern: voip-g711}}
mixes: [{name: both, flows: [{treatment: cubic}, {treatment: haul}]}]
probes: [{treatment: voice, alone: 60s}]
seed: 1
iterations: 1
size: 64 KiB
limits: {connect: 30s, transfer: 5m}
groups:
  - {name: few, radio: prc-117g-anw2c, iterations: 10, treatments: [cubic, haul, voice]}
  - {name: one, radio: mpu4, iterations: 1}
require:
  - %s
`

// Each mistake in a requirement is one problem, at its place.
func TestRequireMistakes(t *testing.T) {
	cat := testCatalog(t)
	for text, want := range map[string]string{
		"{treatment: cubic}": "17:5: require[0]: expected one metric (average, delivered, share_of_ideal, share_of_coded_bound, failures, ratio_to, delay_mean, delay_p95, delay_p99, loss), found none",
		"{failures: {at_most: 50 %}, average: {at_least: 1 KB/s}}": "found average, failures",
		"{average: }":                                                                  "require[0].average",
		"{average: {}}":                                                                "require[0].average: expected at_least, at_most or both",
		"{average: {at_least: 100}}":                                                   `expected a throughput such as "100 KB/s" or "1 Mbit/s", found "100"`,
		"{average: {at_least: -1 KB/s}}":                                               `expected a number from 0 to 1e+09 and KB/s, found "-1 KB/s"`,
		"{average: {at_least: 9 KB/s, at_most: 8 KB/s}}":                               "17:26: require[0].average.at_least: 9 KB/s is more than at_most, 8 KB/s: no value meets both",
		"{average: {least: 9 KB/s}}":                                                   `unknown key "least"`,
		"{group: few, treatment: bbr, average: {at_least: 9 KB/s}}":                    `17:29: require[0].treatment: unknown treatment "bbr"; there are cubic, haul`,
		"{group: few, treatment: both, average: {at_least: 9 KB/s}}":                   `"both" is a mix of several treatments, expected a treatment that carries transfers`,
		"{group: few, treatment: voice, average: {at_least: 9 KB/s}}":                  `"voice" is not a treatment that carries transfers`,
		"{group: few, treatment: [haul, haul], average: {at_least: 9 KB/s}}":           `treatment "haul" is given twice`,
		"{group: few, treatment: [], average: {at_least: 9 KB/s}}":                     "expected at least one, found an empty list",
		"{radio: prc-152a, average: {at_least: 9 KB/s}}":                               `17:13: require[0].radio: unknown radio of the plan "prc-152a"`,
		"{topology: moon, average: {at_least: 9 KB/s}}":                                `unknown topology of the plan "moon"; there are vip-lot`,
		"{group: many, average: {at_least: 9 KB/s}}":                                   `unknown group "many"; there are few, one`,
		"{where: {size: 64 KiB}, average: {at_least: 9 KB/s}}":                         "require[0].where: needs group: each group has axes of its own",
		"{group: few, where: {size: 1 MiB}, average: {at_least: 9 KB/s}}":              "17:5: require[0]: no run of the plan has what is required here",
		"{group: few, where: {sise: 1 MiB}, average: {at_least: 9 KB/s}}":              `unknown key "sise"`,
		"{group: few, radio: mpu4, average: {at_least: 9 KB/s}}":                       "no run of the plan has what is required here",
		"{group: few, delivered: {at_least: 50 %}}":                                    "require[0].delivered.by is missing",
		"{group: few, delivered: {by: 2m}}":                                            "require[0].delivered.at_least is missing",
		"{group: few, delivered: {by: 6m, at_least: 50 %}}":                            "require[0].delivered.by: 6m0s is beyond the limits of a trial: connect and transfer of all attempts take at most 5m30s, and nothing is delivered later",
		"{group: few, delivered: {by: 2m, at_least: 101 %}}":                           `expected a number from 0 to 100 and %, found "101 %"`,
		"{group: few, delivered: {by: 2m, at_least: 0.5}}":                             `expected a number from 0 to 100 and %, found "0.5"`,
		"{group: few, delivered: {by: 2m, at_least: 95 %}}":                            "require[0].delivered.at_least: cannot be shown by 10 iterations, not even where every payload is delivered: 73 are needed",
		"{group: few, delivered: {by: 2m, at_least: 100 %}}":                           "cannot be shown by any number of iterations: the interval at 95 % of a share does not reach the bound",
		"{group: few, failures: {at_most: 5 %}}":                                       "require[0].failures.at_most: cannot be shown by 10 iterations, not even where no trial fails: 73 are needed",
		"{group: few, failures: {at_most: 0 %}}":                                       "cannot be shown by any number of iterations",
		"{average: {at_least: 9 KB/s}}":                                                "require[0].average: cannot be shown by 1 iteration, one trial has no interval: 2 are needed",
		"{ratio_to: {treatment: cubic, at_least: 95 %}}":                               "require[0].ratio_to: cannot be shown by 1 iteration, the signed-rank test decides nothing of so few pairs: 6 are needed",
		"{group: few, ratio_to: {at_least: 95 %}}":                                     "require[0].ratio_to.treatment is missing",
		"{group: few, ratio_to: {treatment: cubic}}":                                   "expected at_least, at_most or both",
		"{group: few, treatment: cubic, ratio_to: {treatment: cubic, at_least: 95 %}}": `treatment "cubic" would be held against itself`,
		"{group: few, ratio_to: {treatment: both, at_least: 95 %}}":                    `"both" is a mix of several treatments`,
		"{group: few, ratio_to: {treatment: udt, at_least: 95 %}}":                     `unknown treatment "udt"`,
		"{group: few, loss: {at_most: 2 %}}":                                           "require[0].loss: is a metric of probes: name one with probe",
		"{group: few, probe: voice, average: {at_least: 9 KB/s}}":                      `require[0].average: is a metric of transfers, and probe "voice" carries none`,
		"{group: few, probe: haul, loss: {at_most: 2 %}}":                              `"haul" is not a probe`,
		"{group: few, probe: vioce, loss: {at_most: 2 %}}":                             `unknown treatment "vioce" (did you mean "voice"?)`,
		"{group: few, probe: voice, treatment: both, loss: {at_most: 2 %}}":            "no run of the plan has what is required here",
		"{group: few, probe: voice, treatment: bth, loss: {at_most: 2 %}}":             `unknown treatment "bth"`,
		"{group: few, probe: voice, loss: {at_least: 2 %}}":                            `unknown key "at_least"`,
		"{group: few, probe: voice, delay_p95: {at_most: 200}}":                        "expected a duration such as",
		"{group: few, probe: voice, delay_p95: {at_most: 2h}}":                         "expected 10µs to 1h0m0s, found 2h0m0s",
		"7": "expected a mapping",
	} {
		source := fmt.Sprintf(requiring, text)
		_, err := plan.Parse(nil, "p.yaml", []byte(source), cat)
		if err == nil {
			t.Errorf("%s was read", text)
			continue
		}
		if got := err.Error(); !strings.Contains(got, want) || strings.Contains(got, "\n") && !strings.Contains(got, "unknown key") {
			t.Errorf("%s:\n%v\nexpected\n%s", text, err, want)
		}
	}
}

// What is known of emulated radios alone, and of transfers of a size, is not required of others.
func TestRequireOfOtherRuns(t *testing.T) {
	const source = `name: other
radio: %s
topology: vip-lot
size: 64 KiB
treatments: [{name: cubic, protocol: tcp}%s]
flows: [{%s}]
iterations: 10
seed: 1
require: [{%s}]
`
	cat := testCatalog(t)
	for _, c := range []struct{ radio, flow, required, want string }{
		{"prc-117g-anw2c", "duration: 10s", "delivered: {by: 1m, at_least: 50 %}", "9:23: require[0].delivered: the flows of a trial end after a time, whether or not anything was delivered"},
		{"prc-117g-anw2c", "duration: 10s", "share_of_ideal: {at_least: 50 %}", "9:28: require[0].share_of_ideal: is not known: Ideal and the coded bound are of one transfer of a size"},
		{"prc-117g-anw2c", "count: 2", "share_of_coded_bound: {at_least: 50 %}", "require[0].share_of_coded_bound: is not known: Ideal and the coded bound are of one transfer of a size"},
		{"prc-117g-anw2c", "count: 1}]\nprobes: [{treatment: voice", "share_of_ideal: {at_least: 50 %}", "10:28: require[0].share_of_ideal: is not known: Ideal and the coded bound do not contain the load of probes"},
		{"prc-117g-anw2c", "count: 1}]\nprobes: [{treatment: voice, alone: 10s, beside: false", "share_of_ideal: {at_least: 50 %}", ""},
		{"prc-152a", "count: 1", "share_of_ideal: {at_least: 50 %}", "require[0].share_of_ideal: is not known: radio prc-152a is not emulated"},
		{"prc-152a", "count: 1", "average: {at_least: 1 Mbit/s}", ""},
	} {
		more := ""
		if strings.Contains(c.flow, "voice") {
			more = ", {name: voice, protocol: probe}"
		}
		_, err := plan.Parse(nil, "p.yaml", []byte(fmt.Sprintf(source, c.radio, more, c.flow, c.required)), cat)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
}

// A plan may not require more than a sheet can hold.
func TestRequireTooMuch(t *testing.T) {
	var b strings.Builder
	b.WriteString("name: much\nradio: prc-117g-anw2c\ntopology: vip-lot\nsize: 64 KiB\nsweep: [{name: rate, set: rate, values: [")
	for i := range 300 {
		fmt.Fprintf(&b, "%d kbit/s, ", i+10)
	}
	b.WriteString("]}]\niterations: 2\nseed: 1\ntreatments: [{name: cubic, protocol: tcp}]\nrequire:\n")
	for range 100 {
		b.WriteString("  - {average: {at_least: 1 KB/s}}\n")
	}
	_, err := plan.Parse(nil, "p.yaml", []byte(b.String()), testCatalog(t))
	require.ErrorContains(t, err, "76:5: require[66]: what is required up to here makes more than 20000 requirements of single runs and treatments: limit it by treatment, radio, topology or group")
	b.WriteString("  - {average: {at_least: 1 KB/s}}\n")
	_, err = plan.Parse(nil, "p.yaml", []byte(b.String()), testCatalog(t))
	require.ErrorContains(t, err, "expected 1 to 100 requirements, found 101")
}

// Nothing can be required of a ratio in a run that a rule may stop: its interval is of a fixed
// number of iterations.
func TestNoRatioBesideARule(t *testing.T) {
	stops := strings.Replace(requiring, "iterations: 10,", "iterations: 10, stop: {first: 10, every: 1},", 1)
	_, err := plan.Parse(nil, "p.yaml", fmt.Appendf(nil, stops, "{group: few, treatment: haul, ratio_to: {treatment: cubic, at_least: 95 %}}"), testCatalog(t))
	require.ErrorContains(t, err, "require[0].ratio_to: has no interval in a run with a rule to stop by")
	_, err = plan.Parse(nil, "p.yaml", fmt.Appendf(nil, stops, "{group: few, treatment: haul, average: {at_least: 9 KB/s}}"), testCatalog(t))
	require.NoError(t, err)
}
