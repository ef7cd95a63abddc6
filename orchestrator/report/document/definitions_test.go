package document

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// metricRow is the row of a metric in a table of definitions; nil: there is none.
func metricRow(table *Table, name string) []string {
	if table == nil {
		return nil
	}
	for _, r := range table.Rows {
		if r.Cells[0] == name {
			return r.Cells
		}
	}
	return nil
}

func TestDefinitionsOfTCP(t *testing.T) {
	ds := reporttest.Campaign(reporttest.Quickstart())
	ideal := func(trial int, d time.Duration) {
		a := &ds.Runs[0].Trials[trial].Attempts[0]
		a.Ideal, a.Retransmits = d, nil
		a.Connect, a.Elapsed = time.Second, 5*time.Second
	}
	ideal(0, 3*time.Second) // of TCP CUBIC: 2, 1 and 3
	ideal(4, 6*time.Second)
	ideal(8, 2*time.Second)
	sections := sectionsOf(t, definitions, ds)
	table := tableCalled(sections, "Metrics of RFC 6349")
	assert.Equal(t, "RFC 6349, section 4.1", metricRow(table, "TCP transfer time ratio")[1])
	assert.Contains(t, metricRow(table, "TCP transfer time ratio")[2], "time of Ideal on the same channel realisation")
	assert.Contains(t, metricRow(table, "TCP efficiency percentage")[2], "not computed: the drivers did not record")
	assert.Contains(t, metricRow(table, "Buffer delay percentage")[2], "not computed")
	values := tableCalled(sections, "Values by RFC 6349")
	require.Len(t, values.Rows, 2, "CUBIC and BBR; SCTP and UDT are no TCP")
	assert.Equal(t, []string{"1", "AN/PRC-117G, ANW2C at VIP Lot", "TCP CUBIC", "3", "2.00", "1.00", "3.00", ""}, values.Rows[0].Cells)
	assert.Equal(t, "2.00", cellOf(t, values, 1, "Segments sent again, mean"))
	assert.Nil(t, sectionNamed(sections, "definitions-packets"))
	assert.Nil(t, sectionNamed(sections, "definitions-voice"))
	assert.Nil(t, sectionNamed(sections, "definitions-capacity"))

	without := reporttest.Campaign(reporttest.NewRun("r-1", "mpu4", "WaveRelay MPU4", "flag-pole", "Flag Pole", 1<<20, 3, reporttest.SCTP, reporttest.UDT))
	assert.Nil(t, sectionNamed(sectionsOf(t, definitions, without), "definitions-tcp"))
	assert.Empty(t, sectionsOf(t, definitions, &report.Dataset{}))
}

// What TCP sent and how long its round trips were, by hand: of 1200 bytes 300 again is 75 %,
// 50 ms over 40 ms is 25 % more.
func TestDefinitionsOfTCPMeasured(t *testing.T) {
	ds := reporttest.Campaign(reporttest.Quickstart())
	for i, x := range map[int]struct {
		all, again, least int64
		mean              float64
	}{0: {1200, 300, 40_000, 50_000}, 4: {1000, 0, 40_000, 40_000}, 8: {2000, 1000, 20_000, 50_000}} {
		a := &ds.Runs[0].Trials[i].Attempts[0]
		require.Equal(t, "tcp-cubic", ds.Runs[0].Trials[i].Treatment)
		a.TransmittedBytes, a.RetransmittedBytes, a.RTTLeastUS, a.RTTMeanUS = &x.all, &x.again, &x.least, &x.mean
	}
	sections := sectionsOf(t, definitions, ds)
	table := tableCalled(sections, "Metrics of RFC 6349")
	assert.Contains(t, metricRow(table, "TCP efficiency percentage")[2], "payload that the client's kernel sent")
	assert.Contains(t, metricRow(table, "Buffer delay percentage")[3], "section 3.2.1")
	values := tableCalled(sections, "Values by RFC 6349")
	assert.Equal(t, "75.00", cellOf(t, values, 0, "Efficiency, %"), "75, 100 and 50")
	assert.Equal(t, "50.00", cellOf(t, values, 0, "Least efficiency, %"))
	assert.Equal(t, "58", cellOf(t, values, 0, "Buffer delay, %"), "25, 0 and 150")
	assert.Equal(t, "150", cellOf(t, values, 0, "Largest buffer delay, %"))
	assert.Empty(t, cellOf(t, values, 1, "Efficiency, %"))
}

func TestDefinitionsOfManyRuns(t *testing.T) {
	values := tableCalled(sectionsOf(t, definitions, reporttest.Big(60, 3)), "Values by RFC 6349, over all runs")
	require.Len(t, values.Rows, 2)
	assert.Equal(t, "180", cellOf(t, values, 0, "Transfers"))
}

func TestDefinitionsOfProbes(t *testing.T) {
	ds := reporttest.Probed()
	sections := sectionsOf(t, definitions, ds)
	packets := tableCalled(sections, "Metrics of the packets")
	assert.Equal(t, "RFC 7680, sections 2 and 4.1", metricRow(packets, "one-way loss ratio")[1])
	assert.Contains(t, metricRow(packets, "one-way delay")[3], "where clocks were not compared")
	assert.Nil(t, metricRow(packets, "duplication"), "nothing was duplicated")
	assert.Equal(t, "RFC 9097, section 6", metricRow(tableCalled(sections, "Metrics of searches"), "maximum IP-layer capacity")[1])
	all := strings.Join(textsOf(sections), "\n")
	assert.Contains(t, all, "every delay is uncertain by 25.0 ms. (run 2)")
	assert.Contains(t, all, "Voice (G.711): G.711 with concealment of losses, Ie 0, Bpl 25.1, 20 ms of delay of its own.")

	// The delay beside TCP CUBIC, over the least one alone.
	table := report.Analyse(ds, report.Options{}).Tables[0]
	alone, beside := table.Probes[0], table.Probes[1]
	require.Equal(t, "tcp-cubic", beside.Beside)
	buffer := tableCalled(sections, "Buffer delay percentage")
	require.Len(t, buffer.Rows, 4, "the third run's clocks are not known")
	assert.InDelta(t, 860, 100*(*beside.DelayMeanMS / *alone.DelayMinMS - 1), 1)
	assert.Equal(t, "860", cellOf(t, buffer, 0, "Buffer delay, %"))

	voice := tableCalled(sections, "Quality of voice")
	require.Len(t, voice.Rows, 6)
	assert.Equal(t, []string{"1", "WaveRelay MPU4 at Flag Pole", "Voice (G.711), alone", "86.1", "4.23", "118.1", "1.00 %"}, voice.Rows[0].Cells)
	assert.Equal(t, "122.1", cellOf(t, voice, 3, "Playout deadline, ms"), "by the clocks, which are 4 ms apart")
}

// A baseline that a probe measured is told with its source, value and time, and with how far
// the transfers' least round-trip times are from it.
func TestDefinitionsOfBaseline(t *testing.T) {
	ds := reporttest.ProbedBothWays()
	sections := sectionsOf(t, definitions, ds)
	row := metricRow(tableCalled(sections, "Metrics of RFC 6349"), "Buffer delay percentage")
	assert.Contains(t, row[2], "least round-trip time of a probe that ran in both directions without transfers beside it")
	assert.NotContains(t, row[2]+row[3], "of the transfer itself")
	table := tableCalled(sections, "Round-trip time without load")
	require.NotNil(t, table)
	require.Len(t, table.Rows, 1)
	assert.Equal(t, []string{"Small packets", "4", "2026-03-01 12:01:00 UTC", "50.0", "TCP CUBIC", "3", "20.0"}, table.Rows[0].Cells[len(table.Rows[0].Cells)-7:])
	assert.Equal(t, "50", cellOf(t, tableCalled(sections, "Values by RFC 6349"), 0, "Buffer delay, %"))

	ds.Runs = append(ds.Runs, reporttest.Campaign(reporttest.Quickstart()).Runs[0])
	a := ds.Runs[1].Trials[0].Counted()
	a.RTTMeanUS, a.RTTLeastUS = reporttest.Ptr(50_000.0), reporttest.Ptr[int64](40_000)
	row = metricRow(tableCalled(sectionsOf(t, definitions, ds), "Metrics of RFC 6349"), "Buffer delay percentage")
	assert.Contains(t, row[2], "In runs without such a probe it is the least round-trip time of the transfer itself")
	assert.Contains(t, row[3], "the percentage too small")
}
