package document_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radiocontrol"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/document"
	"linktrial/orchestrator/report/reporttest"
	"linktrial/orchestrator/report/wording"
)

// ownChapters are those whose tables and texts these tests are about.
var ownChapters = []string{"results", "comparisons", "published", "anomalies", "appendix"}

// analyses are of all kinds of results.
func analyses() map[string]*report.Analysis {
	out := map[string]*report.Analysis{}
	add := func(name string, ds *report.Dataset, o report.Options) { out[name] = report.Analyse(ds, o) }
	for name, ds := range reporttest.Datasets() {
		add(name, ds, report.Options{})
	}
	add("bootstrap", reporttest.Campaign(reporttest.Quickstart()), report.Options{Bootstrap: true})
	add("left out", reporttest.Eventful(), report.Options{LeaveOut: []string{"udt", "tcp-cubic"}})
	aborted := reporttest.Eventful()
	for i := range aborted.Runs {
		aborted.Runs[i].State = "aborted"
	}
	add("aborted", aborted, report.Options{})
	imported := reporttest.Swept()
	for i := range imported.Runs {
		imported.Runs[i].Imported = &report.Import{Campaign: "their4xq", Origin: "company\u202eB", File: "results.json", SHA256: strings.Repeat("ab", 32), At: time.Unix(0, 0)}
	}
	add("imported", imported, report.Options{})
	add("hostile campaigns", hostile(), report.Options{})
	add("probes alone", probesAlone(), report.Options{})
	add("troubled", troubled(), report.Options{})
	return out
}

// probesAlone is runs without a transfer.
func probesAlone() *report.Dataset {
	ds := reporttest.Probed()
	for i := range ds.Runs {
		r := &ds.Runs[i]
		r.Trials = slices.DeleteFunc(r.Trials, func(t report.Trial) bool { return !r.ProbesAlone(&t) })
		r.Sheet.Trials = slices.DeleteFunc(r.Sheet.Trials, func(t runsheet.Trial) bool { return len(t.Flows) > 0 })
		r.Sheet.Treatments = slices.DeleteFunc(r.Sheet.Treatments, func(t runsheet.Treatment) bool { return !t.Probe })
		for k := range r.Trials {
			r.Trials[k].Index, r.Sheet.Trials[k].Index = k, k
		}
	}
	return ds
}

// hostile is two campaigns with texts of others that no line of a report may have.
func hostile() *report.Dataset {
	const text = " a\x1b[2Jb\r\n\u202ec "
	var all []*report.Dataset
	for i := range 2 {
		ds := reporttest.Campaign()
		ds.Campaign, ds.Notes = fmt.Sprint("c-", i, text), []string{text}
		for k := range 3 {
			r := reporttest.NewRun(fmt.Sprint("r-", i, k, text), "radio"+text, "Radio"+text, "place"+text+fmt.Sprint(k), "Place"+text, 1000, 6, reporttest.Treatment{Name: "one" + text, Label: "One" + text, KBps: 10}, reporttest.Treatment{Name: "two" + text, Label: "Two" + text, KBps: float64(20 + i)}, reporttest.Treatment{Name: "three", Label: "Three", Missing: text})
			r.Message, r.State = text, "stopped"
			r.Sheet.Cell.Group, r.Sheet.Cell.Label = "group"+text, "loss"+text
			r.Sheet.Cell.Settings = []runsheet.Setting{{Axis: "loss" + text, Parameter: "channel.loss", Value: text, Label: text}}
			r.Sheet.Treatments[0].Options = map[string]any{"option" + text: fmt.Sprint(text, i)}
			r.Breaches = []report.Breach{{Node: text, Treatment: "one" + text, Message: text}}
			reporttest.Spoil(&r.Trials[0], journal.Failed, "reason"+text, "message"+text, false)
			reporttest.Spoil(&r.Trials[1], journal.Failed, "reason"+text, "message"+text, true)
			r.Trials[2].Attempts[0].Undecided = []string{text}
			ds.Runs = append(ds.Runs, r)
		}
		ds.Published = []report.PublishedRow{{Topology: "place" + text + "0", Radio: "radio" + text, Treatment: "one" + text, AvgKBps: 5, Source: text}}
		ds.PublishedValues = []plan.PublishedValue{
			{Group: "group" + text, Treatment: "one" + text, Metric: plan.MetricKBps, Text: text, Source: text},
			{Group: "group" + text, Treatment: "one" + text, Metric: plan.MetricKBps, Value: reporttest.Ptr(5.0), Source: text},
			{Group: "group" + text, Metric: plan.MetricKBps, Order: []string{"one" + text, "two" + text}, Source: text},
		}
		all = append(all, ds)
	}
	return report.Merge(all)
}

// troubled is a run whose apparatus was not as it should be.
func troubled() *report.Dataset {
	r := reporttest.Quickstart()
	a := &r.Trials[0].Attempts[0]
	a.Undecided = []string{"clock\x1b: the server's journal is not there"}
	a.Radio.Late = &radiocontrol.Late{Missed: 2 * time.Second, Longest: 1500 * time.Microsecond}
	a.Host = &journal.HostLoad{Missed: a.Duration / 2}
	return reporttest.Campaign(r)
}

func of(t testing.TB, v *report.Analysis) *document.Document {
	t.Helper()
	d, err := document.Of(v)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// chapterOf is a section's chapter: the begin of its identity.
func chapterOf(s *document.Section) string {
	chapter, _, _ := strings.Cut(s.ID, "-")
	return chapter
}

// sectionsOf are those of these chapters.
func sectionsOf(d *document.Document, chapters ...string) (out []*document.Section) {
	for i := range d.Sections {
		if slices.Contains(chapters, chapterOf(&d.Sections[i])) {
			out = append(out, &d.Sections[i])
		}
	}
	return out
}

func tablesOf(sections []*document.Section) (out []*document.Table) {
	for _, s := range sections {
		for i := range s.Blocks {
			if t := s.Blocks[i].Table; t != nil {
				out = append(out, t)
			}
		}
	}
	return out
}

// textOf is all that can be read of sections.
func textOf(sections []*document.Section) string {
	var b strings.Builder
	for _, s := range sections {
		for _, text := range textsOf(s) {
			b.WriteString(text + "\n")
		}
	}
	return b.String()
}

func textsOf(s *document.Section) []string {
	out := []string{s.Title}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		out = append(append(out, b.Paragraph), b.List...)
		if t := b.Table; t != nil {
			out = append(append(out, t.Caption), t.Notes...)
			for _, heads := range t.Heads {
				for _, h := range heads {
					out = append(out, h.Text)
				}
			}
			for _, r := range t.Rows {
				out = append(out, r.Cells...)
			}
		}
		if f := b.Figure; f != nil {
			out = append(out, f.Caption, f.Alt)
		}
	}
	return out
}

// Every table is a table, every drawing a drawing, every text fit for one line, and every
// chapter has something in it.
func TestChapters(t *testing.T) {
	id := regexp.MustCompile(`^[a-z0-9-]+$`)
	for name, v := range analyses() {
		d := of(t, v)
		seen := map[string]bool{}
		for i := range d.Sections {
			if s := &d.Sections[i]; seen[s.ID] || !id.MatchString(s.ID) {
				t.Errorf("%s: section %q is there twice, or has no fit identity", name, s.ID)
			} else {
				seen[s.ID] = true
			}
		}
		sections := sectionsOf(d, ownChapters...)
		for i, s := range sections {
			if part := i+1 < len(sections) && sections[i+1].Level == 2; len(s.Blocks) == 0 && (s.Level == 2 || !part) {
				t.Errorf("%s: section %s has nothing in it", name, s.ID)
			}
			for _, text := range textsOf(s) {
				if text != wording.Clean(text) {
					t.Errorf("%s: %s: text %q", name, s.ID, text)
				}
			}
			for k := range s.Blocks {
				if err := wrong(&s.Blocks[k]); err != nil {
					t.Errorf("%s: %s, block %d: %v", name, s.ID, k, err)
				}
			}
		}
		if len(v.Tables) == 0 && len(sections) > 0 {
			t.Errorf("%s has no run, and the chapter %s", name, sections[0].ID)
		}
	}
}

// wrong says what a renderer could not make a table or a drawing of.
func wrong(b *document.Block) error {
	if t := b.Table; t != nil {
		if t.Caption == "" || t.Number == 0 || len(t.Rows) == 0 {
			return fmt.Errorf("table %d, %q has %d rows", t.Number, t.Caption, len(t.Rows))
		}
		for _, heads := range t.Heads {
			sum := 0
			for _, h := range heads {
				sum += max(1, h.Span)
			}
			if sum != len(t.Columns) {
				return fmt.Errorf("heads %v span %d of %d columns", heads, sum, len(t.Columns))
			}
		}
		for _, r := range t.Rows {
			if len(r.Cells) != len(t.Columns) {
				return fmt.Errorf("row %q has %d of %d cells", r.Cells, len(r.Cells), len(t.Columns))
			}
		}
	}
	if f := b.Figure; f != nil {
		if f.Caption == "" || f.Alt == "" || f.Number == 0 {
			return fmt.Errorf("figure %d, %q, %q", f.Number, f.Caption, f.Alt)
		}
		x := xml.NewDecoder(bytes.NewReader(f.SVG))
		for {
			if _, err := x.Token(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// In the layout of Table 2 are the averages of all treatments of all runs, once each.
func TestLayoutHasAllAverages(t *testing.T) {
	for name, v := range analyses() {
		rate := v.RateUnit()
		want, got := map[string]int{}, map[string]int{}
		for i := range v.Tables {
			for k := range v.Tables[i].Rows {
				r := &v.Tables[i].Rows[k]
				value := rate.Write(r.AverageKBps)
				if r.Missing != "" {
					value = "missing"
				}
				want[wording.Clean(r.Label)+": "+value]++
			}
		}
		for _, table := range tablesOf(sectionsOf(of(t, v), "results")) {
			if !strings.HasPrefix(table.Caption, "Throughput by treatment, topology and radio") {
				continue
			}
			if n := len(table.Columns) - 2; n > 6 {
				t.Errorf("%s: %d columns of values", name, n)
			}
			treatments := 0
			for _, r := range table.Rows {
				if !r.Group {
					continue
				}
				treatments++
				for _, cell := range r.Cells[2:] {
					if cell != "" {
						got[r.Cells[0]+": "+cell]++
					}
				}
			}
			if treatments > 12 {
				t.Errorf("%s: %d treatments in a table", name, treatments)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// A treatment that is missing everywhere has one row, which says so, and a reason below.
func TestMissingTreatmentHasOneRow(t *testing.T) {
	table := tablesOf(sectionsOf(of(t, report.Analyse(reporttest.Eventful(), report.Options{})), "results"))[0]
	if got := table.Rows[0]; got.Cells[0] != reporttest.Haul.Label || got.Cells[2] != "missing" || !table.Rows[1].Group {
		t.Errorf("got %v", table.Rows[:2])
	}
	notes := strings.Join(table.Notes, "\n")
	for _, want := range []string{"Haul (in the place of Mockets) is missing: no driver of that name is installed.", "the disk of node client is full"} {
		if strings.Count(notes, want) != 1 {
			t.Errorf("%q is not in %q once", want, notes)
		}
	}
}

// Every comparison is there, also of more runs than have a table each.
func TestEveryComparisonIsThere(t *testing.T) {
	for name, v := range analyses() {
		want := 0
		for i := range v.Tables {
			for k := range v.Tables[i].Rows {
				if report.HasComparison(&v.Tables[i].Rows[k]) {
					want++
				}
			}
		}
		got := 0
		for _, table := range tablesOf(sectionsOf(of(t, v), "comparisons")) {
			if strings.HasPrefix(table.Caption, "Throughput against the reference") {
				got += len(table.Rows)
			}
		}
		if got != want {
			t.Errorf("%s: %d of %d comparisons", name, got, want)
		}
	}
	text := textOf(sectionsOf(of(t, report.Analyse(reporttest.Compared(), report.Options{})), "comparisons"))
	if !strings.Contains(text, "c-20260315-1 against c-20260314-1") {
		t.Errorf("the campaigns are not compared: %s", text)
	}
}

// Published values are beside ours, and nowhere where nobody has named the radio.
func TestPublished(t *testing.T) {
	ds := reporttest.Eventful()
	ds.Published = append(ds.Published, report.PublishedRow{Radio: "another", Topology: "vip-lot", Treatment: "udt"})
	v := report.Analyse(ds, report.Options{})
	rows := 0
	sections := sectionsOf(of(t, v), "published")
	for _, table := range tablesOf(sections) {
		rows += len(table.Rows)
	}
	if want := len(v.Against().Lines); rows != want {
		t.Errorf("%d of %d published values", rows, want)
	}
	if text := textOf(sections); !strings.Contains(text, "-45.9 %") || !strings.Contains(text, "1 published row is of radios") {
		t.Errorf("no deviation, or no word on what has no counterpart: %s", text)
	}
	for i := range ds.Runs {
		ds.Runs[i].Place = journal.PlaceUnnamed
	}
	if got := sectionsOf(of(t, report.Analyse(ds, report.Options{})), "published"); len(got) > 0 {
		t.Errorf("published values beside those of an unnamed radio: %s", textOf(got))
	}
}

// Of a figure of many panels the first parts are there, and how to get all.
func TestManyPanels(t *testing.T) {
	parts := map[string]int{}
	sections := sectionsOf(of(t, report.Analyse(reporttest.Big(150, 1), report.Options{})), "results")
	for _, s := range sections {
		for i := range s.Blocks {
			if f := s.Blocks[i].Figure; f != nil {
				kind, _, _ := strings.Cut(f.Caption, ":")
				parts[kind]++
				want := fmt.Sprintf("Part %d of 13.", parts[kind])
				if kind == "Throughput by treatment" && (!strings.Contains(f.Caption, want) || !bytes.Contains(f.SVG, []byte(want))) {
					t.Errorf("%q, or its drawing, does not say %q", f.Caption, want)
				}
			}
		}
	}
	if parts["Throughput by treatment"] != 12 || parts["Distribution of throughput"] != 12 {
		t.Errorf("parts %v", parts)
	}
	want := "6 panels of this figure are left out. To draw all: linktrial results c-20260314-1 --format svg --out FOLDER"
	if text := textOf(sections); !strings.Contains(text, want) {
		t.Errorf("%q is not said", want)
	}
}

// A drawing's other text says of which treatment a value is highest, by the values.
func TestAlternativeText(t *testing.T) {
	v := report.Analyse(reporttest.Campaign(reporttest.Quickstart()), report.Options{})
	rate := v.RateUnit()
	udt, sctp := v.Tables[0].RowOf("udt"), v.Tables[0].RowOf("sctp")
	want := fmt.Sprintf("the average is highest of UDT (%s KB/s), lowest of SCTP (%s KB/s).", rate.Write(udt.AverageKBps), rate.Write(sctp.AverageKBps))
	if text := textOf(sectionsOf(of(t, v), "results")); !strings.Contains(text, want) {
		t.Errorf("%q is not said: %s", want, text)
	}
}

// Columns and tables of different runs are told apart, also where their conditions are alike.
func TestRunsAreToldApart(t *testing.T) {
	for name, v := range analyses() {
		seen := map[string]bool{}
		for _, table := range tablesOf(sectionsOf(of(t, v), ownChapters...)) {
			if seen[table.Caption] {
				t.Errorf("%s: two tables are called %q", name, table.Caption)
			}
			seen[table.Caption] = true
			if len(table.Heads) < 2 {
				continue
			}
			columns, at, left := map[string]bool{}, 0, 0
			for _, h := range table.Heads[1] {
				for ; left == 0; at++ {
					left = table.Heads[0][at].Span
				}
				left--
				if full := table.Heads[0][at-1].Text + ", " + h.Text; columns[full] {
					t.Errorf("%s: %s: two columns are called %q", name, table.Caption, full)
				} else {
					columns[full] = true
				}
			}
		}
	}
}
