package document

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// sectionsOf are the sections of one chapter of a dataset's report.
func sectionsOf(t *testing.T, chapter func(*report.Analysis) ([]Section, error), ds *report.Dataset) []Section {
	t.Helper()
	sections, err := chapter(report.Analyse(ds, report.Options{Bootstrap: true}))
	require.NoError(t, err)
	return sections
}

// sectionNamed is the section of an ID; nil: there is none.
func sectionNamed(sections []Section, id string) *Section {
	for i := range sections {
		if sections[i].ID == id {
			return &sections[i]
		}
	}
	return nil
}

// tableCalled is the table whose caption begins so; nil: there is none.
func tableCalled(sections []Section, caption string) *Table {
	for i := range sections {
		for _, b := range sections[i].Blocks {
			if b.Table != nil && strings.HasPrefix(b.Table.Caption, caption) {
				return b.Table
			}
		}
	}
	return nil
}

// cellOf is the cell of a row below a head.
func cellOf(t *testing.T, table *Table, row int, head string) string {
	t.Helper()
	require.NotNil(t, table)
	for i, h := range table.Heads[0] {
		if h.Text == head {
			return table.Rows[row].Cells[i]
		}
	}
	require.Failf(t, "no such column", "%s among %v", head, table.Heads[0])
	return ""
}

// factOf is the value of a fact; empty: there is none of that name.
func factOf(sections []Section, name string) string {
	for i := range sections {
		for _, b := range sections[i].Blocks {
			for _, f := range b.Facts {
				if f.Name == name {
					return f.Value
				}
			}
		}
	}
	return ""
}

// textsOf are all texts of sections.
func textsOf(sections []Section) (out []string) {
	for i := range sections {
		s := &sections[i]
		out = append(out, s.Title)
		for _, b := range s.Blocks {
			out = append(append(out, b.Paragraph), b.List...)
			for _, f := range b.Facts {
				out = append(out, f.Name, f.Value)
			}
			if b.Table != nil {
				out = append(append(out, b.Table.Caption), b.Table.Notes...)
				for _, r := range b.Table.Rows {
					out = append(out, r.Cells...)
				}
			}
		}
	}
	return out
}

func TestConclusionNamesLeaders(t *testing.T) {
	ds := reporttest.Compared()
	sections := sectionsOf(t, conclusion, ds)
	leaders := tableCalled(sections, "Which treatment leads where")
	require.NotNil(t, leaders)
	require.Len(t, leaders.Rows, 2, "the third run compares nothing")
	for i, v := range report.Analyse(ds, report.Options{}).Tables[:2] {
		assert.Equal(t, fmt.Sprint(i+1), cellOf(t, leaders, i, "Run"))
		assert.Equal(t, "UDT", cellOf(t, leaders, i, "Leader"))
		assert.Equal(t, "no", cellOf(t, leaders, i, "Decided"))
		assert.Equal(t, v.Lead.Text, cellOf(t, leaders, i, "In short"))
		row := v.Rows[len(v.Rows)-1]
		require.Equal(t, "UDT", row.Label)
		assert.Equal(t, fmt.Sprintf("%.2f", *row.AverageKBps), cellOf(t, leaders, i, "Average, KB/s"))
		assert.Equal(t, fmt.Sprintf("%.2f to %.2f", row.MeanCI.Low, row.MeanCI.High), cellOf(t, leaders, i, "95 % interval"))
	}
	all := strings.Join(textsOf(sections), "\n")
	assert.Contains(t, all, "This report is of 2 campaigns: c-20260314-1, c-20260315-1.")
	assert.Contains(t, all, "Of 2 runs, UDT leads in 2 (0 decided).")
	assert.Contains(t, all, "In runs 1, 2 the trials do not decide which treatment is best.")
	assert.Contains(t, all, "In run 3 fewer than two treatments have values")
}

func TestConclusionOfOneRunIsItsSentence(t *testing.T) {
	ds := reporttest.Campaign(reporttest.Quickstart())
	sections := sectionsOf(t, conclusion, ds)
	require.Len(t, sections, 1)
	table := report.Analyse(ds, report.Options{Bootstrap: true}).Tables[0]
	assert.Equal(t, table.Conclusion+" "+strings.Join(table.Notes, " "), sections[0].Blocks[0].Paragraph)
}

func TestConclusionOfManyRunsIsATable(t *testing.T) {
	sections := sectionsOf(t, conclusion, reporttest.Big(60, 3))
	assert.Nil(t, sectionNamed(sections, "conclusion-runs"), "sixty paragraphs")
	assert.Len(t, tableCalled(sections, "Which treatment leads where").Rows, 60)
	assert.NotNil(t, sectionNamed(sectionsOf(t, conclusion, reporttest.Places()), "conclusion-over-runs"))
}

func TestConclusionOfRequirements(t *testing.T) {
	sections := sectionsOf(t, conclusion, reporttest.Required())
	table := tableCalled(sections, "Requirements of the plan")
	require.NotNil(t, table)
	require.Len(t, table.Rows, 13)
	assert.Equal(t, "pass", cellOf(t, table, 0, "Outcome"))
	assert.Contains(t, cellOf(t, table, 0, "Value, interval and requirement"), "at least 100 KB/s required")
	assert.Nil(t, tableCalled(sectionsOf(t, conclusion, reporttest.Eventful()), "Requirements"), "the plan has none")
}

func TestConclusionWithoutComparison(t *testing.T) {
	one := reporttest.Campaign(reporttest.NewRun("r-1", "mpu4", "WaveRelay MPU4", "flag-pole", "Flag Pole", 1<<20, 1, reporttest.Cubic))
	sections := sectionsOf(t, conclusion, one)
	assert.Contains(t, strings.Join(textsOf(sections), "\n"), "nothing is compared")
	assert.Nil(t, tableCalled(sections, ""))
	assert.Empty(t, sectionsOf(t, conclusion, &report.Dataset{}))
}

// Runs that differ in nothing but their size are told apart by it.
func TestRunsAreToldApartBySize(t *testing.T) {
	v := report.Analyse(reporttest.Campaign(
		reporttest.NewRun("r-1", "mpu4", "WaveRelay MPU4", "flag-pole", "Flag Pole", 1<<20, 3, reporttest.SCTP, reporttest.UDT),
		reporttest.NewRun("r-2", "mpu4", "WaveRelay MPU4", "flag-pole", "Flag Pole", 64<<10, 3, reporttest.SCTP, reporttest.UDT)), report.Options{})
	assert.Equal(t, "1 MiB", caseOf(v, &v.Tables[0]))
	assert.Equal(t, "64 KiB", caseOf(v, &v.Tables[1]))
	v.Tables[0].SizeBytes, v.Tables[0].Settings = 64<<10, "bandwidth 16 kbit/s"
	assert.Equal(t, "bandwidth 16 kbit/s", caseOf(v, &v.Tables[0]))
	assert.Empty(t, caseOf(v, &v.Tables[1]))
}
