package trial

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// printed is what f writes to standard output.
func printed(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	before := os.Stdout
	os.Stdout = w
	done := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(r)
		done <- b
	}()
	f()
	os.Stdout = before
	require.NoError(t, w.Close())
	return string(<-done)
}

func TestPowerFlags(t *testing.T) {
	o, err := (&powerFlags{spread: "35 %", effect: "10%"}).options()
	require.NoError(t, err)
	require.Equal(t, report.PowerOptions{Assumed: 0.35, Effect: 0.1}, o)
	o, err = (&powerFlags{}).options()
	require.NoError(t, err)
	require.Zero(t, o)
	for _, bad := range []string{"20", "x%", "%", "0%", "-5%", "1001%", "NaN%", "1e9%"} {
		_, err = (&powerFlags{effect: bad}).options()
		require.EqualError(t, err, `--effect "`+bad+`": expected 0.1% to 1000%, such as 20%`)
		_, err = (&powerFlags{spread: bad}).options()
		require.ErrorContains(t, err, "--spread ")
	}
	file := filepath.Join(t.TempDir(), "x.json")
	_, err = (&powerFlags{of: file}).options()
	require.ErrorContains(t, err, "--spread-of: open ")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	_, err = (&powerFlags{of: file}).options()
	require.ErrorContains(t, err, "--spread-of x.json: line 1, column 1: ")
}

func TestExplainPower(t *testing.T) {
	r := reporttest.NewRun("c-20260314-1-1", "mpu4", "MPU4", "vip-lot", "VIP lot", 256<<10, 10, reporttest.Treatment{Name: "tcp", Label: "TCP", Protocol: "tcp", KBps: 100},
		reporttest.Treatment{Name: "udt", Label: "UDT", Protocol: "udt", KBps: 120})
	var b bytes.Buffer
	require.NoError(t, report.Analyse(reporttest.Campaign(r), report.Options{}).WriteJSON(&b))
	file := filepath.Join(t.TempDir(), "results.json")
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	o, err := (&powerFlags{of: file, effect: "5%"}).options()
	require.NoError(t, err)
	other := *r.Sheet
	other.Cell.SizeBytes = 1 << 20
	text := printed(t, func() {
		require.NoError(t, explainPower(t.Context(), []*runsheet.Sheet{r.Sheet, r.Sheet, &other}, o))
	})
	require.Regexp(t, `(?m)^What the comparisons can find:
runs 1, 2: UDT against TCP: with 10 iterations a difference of [0-9.]+ % is found with 80 % chance, of [0-9.]+ % with 95 %; one of 5.00 % takes \d+ iterations for 80 % chance, \d+ for 95 %; spread of [0-9.]+ %, from 10 iterations of run c-20260314-1-1, emulated, real time
run 3: UDT against TCP: .*; assumed spread of 20.0 % \(results.json has no run of its radio, topology, size and settings\)
A difference of 15 %: `, text)

	other.Trials, other.Treatments = other.Trials[:1], other.Treatments[:1]
	text = printed(t, func() {
		require.NoError(t, explainPower(t.Context(), []*runsheet.Sheet{&other}, report.PowerOptions{}))
	})
	require.Equal(t, "\nNo run compares treatments.\n", text)
}

// Of a run with a rule to stop by, explain says when it looks, and times are the longest.
func TestExplainRule(t *testing.T) {
	r := reporttest.NewRun("c-20260314-1-1", "mpu4", "MPU4", "vip-lot", "VIP lot", 256<<10, 12, reporttest.Treatment{Name: "tcp", Label: "TCP", Protocol: "tcp", KBps: 100},
		reporttest.Treatment{Name: "udt", Label: "UDT", Protocol: "udt", KBps: 120})
	text := printed(t, func() {
		_, err := explain(r.Sheet)
		require.NoError(t, err)
	})
	require.NotContains(t, text, "rule to stop by")
	require.Contains(t, text, "\nIt takes about ")
	ruled := *r.Sheet
	ruled.Stop = &runsheet.Stop{Looks: []int{8, 12}, Alpha: 0.05, Spending: stats.Pocock}
	text = printed(t, func() {
		_, err := explain(&ruled)
		require.NoError(t, err)
		require.NoError(t, explainPower(t.Context(), []*runsheet.Sheet{r.Sheet, &ruled}, report.PowerOptions{}))
	})
	require.Contains(t, text, "\nrule to stop by: it looks after iterations 8, 12\n")
	require.Contains(t, text, "\nIt takes at most about ")
	require.Contains(t, text, "\nrun 2: rule to stop by: it looks after iterations 8, 12; pocock spends 5 % ")
	require.Equal(t, "about", about(r.Sheet))
	require.Equal(t, "at most about", about(r.Sheet, &ruled))
}
