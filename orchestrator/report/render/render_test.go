package render

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"linktrial/internal/docpart"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
	"linktrial/orchestrator/report/wording"
	"linktrial/protocols/contract"
)

func render(t *testing.T, ds *report.Dataset, format string) string {
	t.Helper()
	f, err := As(ds, format, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	content := contentOf(t, f)
	if f.Name == "" || f.MediaType == "" || Find(format).Text() && !utf8.ValidString(content) {
		t.Errorf("file %q, %q", f.Name, f.MediaType)
	}
	return content
}

func contentOf(t testing.TB, f File) string {
	t.Helper()
	content, err := f.Content()
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestGolden(t *testing.T) {
	all := reporttest.Datasets()
	for _, name := range []string{"quickstart", "eventful", "swept", "probed", "compared", "stopped", "required", "places"} {
		for _, format := range OfDataset() {
			// One large dataset's every format is enough.
			if name == "swept" && !strings.HasPrefix(format, "against") && !strings.HasPrefix(format, "sweep") {
				continue
			}
			if name == "probed" && !slices.Contains([]string{"table", "markdown", "probes-csv", "delays-svg"}, format) {
				continue
			}
			if name == "stopped" && !slices.Contains([]string{"table", "markdown", "latex", "csv", "json", "svg"}, format) {
				continue
			}
			if (name == "required" || name == "places") && !slices.Contains([]string{"table", "markdown", "latex"}, format) {
				continue
			}
			if (name == "compared") != strings.HasPrefix(format, "differences") {
				continue
			}
			// TestParquet holds it: its bytes are the library's.
			if !Find(format).Text() {
				continue
			}
			t.Run(name+"/"+format, func(t *testing.T) {
				got := render(t, all[name], format)
				path := filepath.Join("testdata", name+"."+format+".golden")
				if *docpart.Update {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("go test ./orchestrator/report/render -update writes it anew:\n%s", diff)
				}
			})
		}
	}
}

// Every column of the files that are written here is described.
func TestColumnsAreDescribed(t *testing.T) {
	text, err := os.ReadFile("../../../docs/exports.md")
	if err != nil {
		t.Fatal(err)
	}
	for format, file := range map[string]string{"csv": "results.csv", "trials-csv": "trials.csv", "probes-csv": "probes.csv", "breaches-csv": "breaches.csv", "telemetry-csv": "telemetry.csv", "against-csv": "against.csv", "differences-csv": "differences.csv"} {
		_, section, found := strings.Cut(string(text), "\n## "+file+"\n")
		if !found {
			t.Errorf("%s has no section", file)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		head, _, _ := strings.Cut(render(t, reporttest.Eventful(), format), "\r\n")
		for _, c := range strings.Split(head, ",") {
			if !strings.Contains(section, "`"+c+"`") {
				t.Errorf("%s: the column %s is not described", file, c)
			}
		}
	}
}

// The bytes depend neither on the order of maps nor on the machine's time zone.
func TestSameBytes(t *testing.T) {
	for _, format := range OfDataset() {
		want := render(t, reporttest.Eventful(), format)
		elsewhere := reporttest.Eventful()
		zone := time.FixedZone("elsewhere", -7*3600)
		elsewhere.Created = elsewhere.Created.In(zone)
		for i := range elsewhere.Runs {
			r := &elsewhere.Runs[i]
			r.Started, r.Ended = r.Started.In(zone), r.Ended.In(zone)
			for j := range r.Trials {
				for k := range r.Trials[j].Attempts {
					r.Trials[j].Attempts[k].Started = r.Trials[j].Attempts[k].Started.In(zone)
				}
			}
		}
		before := elsewhere.Runs[0].Trials[0].Attempts[0].Started
		if got := render(t, elsewhere, format); got != want {
			t.Errorf("%s differs:\n%s", format, cmp.Diff(want, got))
		}
		if elsewhere.Runs[0].Trials[0].Attempts[0].Started.Location() != before.Location() {
			t.Errorf("%s changed the dataset", format)
		}
	}
}

func TestUnknownFormatListsThoseThatExist(t *testing.T) {
	_, err := As(reporttest.Eventful(), "pdf", report.Options{})
	if err == nil || !strings.Contains(err.Error(), `"pdf"`) || !strings.Contains(err.Error(), strings.Join(OfDataset(), ", ")) {
		t.Errorf("got %v", err)
	}
}

func TestFilesAreTold(t *testing.T) {
	names := map[string]bool{}
	for _, format := range OfDataset() {
		f, err := As(reporttest.Eventful(), format, report.Options{})
		if err != nil || names[f.Name] || contentOf(t, f) == "" {
			t.Errorf("%s: file %s twice or empty: %v", format, f.Name, err)
		}
		names[f.Name] = true
	}
}

// What one asks of the curves is what is drawn, in text and in figures.
func TestChosenCurves(t *testing.T) {
	for _, format := range []string{"sweep", "sweep-svg"} {
		f, err := As(reporttest.Swept(), format, report.Options{Axis: "bandwidth", Metric: report.MetricShareOfIdeal})
		if err != nil {
			t.Fatal(err)
		}
		if s := contentOf(t, f); !strings.Contains(s, "share of Ideal") || !strings.Contains(s, "16 kbit/s") || strings.Contains(s, "gain (%)") {
			t.Errorf("%s:\n%s", format, s)
		}
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		for i, line := range strings.Split(render(t, ds, "table"), "\n") {
			if n := utf8.RuneCountInString(line); n > tableWidth {
				t.Errorf("%s: line %d has %d columns: %s", name, i+1, n, line)
			}
			if strings.ContainsAny(line, "\x1b\r\t") {
				t.Errorf("%s: line %d has control characters: %q", name, i+1, line)
			}
		}
	}
}

// A table has all runs.
func TestTableOfManyRuns(t *testing.T) {
	if s := render(t, reporttest.Big(61, 1), "table"); strings.Count(s, "TCP CUBIC") != 61 || !strings.Contains(s, "Radio 3 at") {
		t.Errorf("the table names a treatment %d times", strings.Count(s, "TCP CUBIC"))
	}
}

// Every cell of a column ends at the same place.
func TestTableColumnsAlign(t *testing.T) {
	lines := strings.Split(render(t, reporttest.Datasets()["twelve"], "table"), "\n")
	at := -1
	rows := 0
	for _, line := range lines {
		r := []rune(line)
		if i := strings.Index(line, "Ideal"); i >= 0 && at < 0 {
			at = utf8.RuneCountInString(line[:i]) + len("Ideal")
		} else if strings.Contains(line, "70.0 %") {
			rows++
			if string(r[at-1]) != "%" || r[at] != ' ' {
				t.Errorf("share of Ideal does not end in column %d: %s", at, line)
			}
		}
	}
	if rows != 12 {
		t.Errorf("%d rows with a share of Ideal", rows)
	}
}

func parseCSV(t *testing.T, s string) []map[string]string {
	t.Helper()
	if strings.Count(s, "\n") != strings.Count(s, "\r\n") {
		t.Error("lines do not end in CRLF")
	}
	records, err := csv.NewReader(strings.NewReader(s)).ReadAll() // refuses uneven rows
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]map[string]string, 0, len(records))
	for _, r := range records[1:] {
		row := map[string]string{}
		for i, name := range records[0] {
			if _, twice := row[name]; twice {
				t.Errorf("column %s twice", name)
			}
			row[name] = wording.Text(r[i])
		}
		rows = append(rows, row)
	}
	return rows
}

func TestCSVReadsBack(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) {
			rows := parseCSV(t, render(t, ds, "csv"))
			k := 0
			for _, table := range report.Summarize(ds) {
				for i := range table.Rows {
					r := &table.Rows[i]
					if got := rows[k]; got["run"] != table.Run || got["treatment"] != r.Treatment || got["average_kb_per_s"] != nine(r.AverageKBps) || got["label"] != wording.Clean(r.Label) {
						t.Errorf("row %d is %v, want %+v", k, got, r)
					}
					k++
				}
			}
			if k != len(rows) {
				t.Errorf("%d rows, want %d", len(rows), k)
			}
			trials := parseCSV(t, render(t, ds, "trials-csv"))
			k = 0
			for _, run := range ds.Runs {
				for _, tr := range run.Trials {
					for _, a := range tr.Attempts {
						if got := trials[k]; got["run"] != run.ID || got["trial"] != whole(tr.Index) || got["attempt"] != whole(a.Attempt) || got["verdict"] != string(a.Verdict) || got["message"] != wording.Clean(a.Message) {
							t.Errorf("attempt %d is %v, want %+v", k, got, a)
						}
						k++
					}
				}
			}
			if k != len(trials) {
				t.Errorf("%d attempts, want %d", len(trials), k)
			}
		})
	}
}

// Every column is described in the documentation.
func TestColumnsAreDocumented(t *testing.T) {
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documentation: %v", err)
	}
	var docs strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(b)
	}
	check := func(name string) {
		if !strings.Contains(docs.String(), "`"+name+"`") {
			t.Errorf("column %s is not documented", name)
		}
	}
	for _, c := range summaryColumns() {
		check(c.name)
	}
	for _, c := range trialColumns() {
		check(c.name)
	}
	for _, c := range againstColumns() {
		check(c.name)
	}
}

func TestJSONRoundTrip(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) {
			want := render(t, ds, "json")
			back, err := report.ReadJSON([]byte(want))
			if err != nil {
				t.Fatal(err)
			}
			for _, format := range OfDataset() {
				if got, want := render(t, back, format), render(t, ds, format); got != want {
					t.Errorf("%s differs after the way through JSON:\n%s", format, cmp.Diff(want, got))
				}
			}
		})
	}
}

func FuzzReadJSON(f *testing.F) {
	few := reporttest.Swept()
	few.Runs = few.Runs[len(few.Runs)-2:]
	for i := range few.Runs {
		few.Runs[i].Trials, few.Runs[i].Provenance = few.Runs[i].Trials[:4], nil
	}
	few.PublishedValues = append(few.PublishedValues, plan.PublishedValue{Group: "loss", Metric: plan.MetricGain, Reference: "sack", AtLeast: reporttest.Ptr(-1e308), AtMost: reporttest.Ptr(1e308)})
	for _, ds := range []*report.Dataset{reporttest.Campaign(reporttest.NewRun("r", "x", "X", "y", "Y", 1000, 1, reporttest.Cubic, reporttest.Haul)), few, {}} {
		b, err := As(ds, "json", report.Options{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(contentOf(f, b)))
	}
	f.Add([]byte(`{"format":1,"dataset":{"runs":[{"trials":[{"attempts":[{"verdict":"succeeded","verified":true,"elapsed_ns":1,"size_bytes":-5}]}]}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		ds, err := report.ReadJSON(b)
		if err != nil {
			return
		}
		for _, format := range OfDataset() {
			one, err := As(ds, format, report.Options{})
			if err != nil {
				t.Fatal(err)
			}
			content, err := one.Content()
			if err != nil {
				return // a year that JSON cannot write
			}
			two, err := As(ds, format, report.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if again := contentOf(t, two); again != string(content) {
				t.Errorf("%s differs", format)
			}
			if Find(format).Text() && !utf8.Valid(content) {
				t.Errorf("%s is not UTF-8", format)
			}
		}
	})
}

var unescapedPipe = regexp.MustCompile(`(^|[^\\])\|`)

func TestMarkdownTablesHold(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		columns := 0
		for i, line := range strings.Split(render(t, ds, "markdown"), "\n") {
			if !strings.HasPrefix(line, "|") {
				columns = 0
				continue
			}
			n := len(unescapedPipe.FindAllString(strings.ReplaceAll(line, "||", "| |"), -1))
			if columns == 0 {
				columns = n
			}
			if n != columns {
				t.Errorf("%s: line %d has %d columns, its table %d: %s", name, i+1, n, columns, line)
			}
		}
	}
}

// checkTeX holds a document to what TeX needs of it: ASCII, braces and
// environments in pairs, as many cells in each row as the table has columns.
func checkTeX(t *testing.T, s string) {
	t.Helper()
	depth, columns := 0, 0
	var open []string
	for n, line := range strings.Split(s, "\n") {
		if strings.HasPrefix(line, "%") {
			continue
		}
		cells := 1
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case c >= 0x80 || c < ' ':
				t.Errorf("line %d: byte %#x", n+1, c)
			case c == '\\':
				i++ // the character after it is no markup
				if rest := line[i:]; strings.HasPrefix(rest, "multicolumn{") {
					n := 0
					if _, err := fmt.Sscanf(rest, "multicolumn{%d}", &n); err != nil {
						t.Errorf("line %d: %v: %s", n+1, err, line)
					}
					cells += n - 1
				}
			case c == '{':
				depth++
			case c == '}':
				depth--
			case c == '&':
				cells++
			case c == '#' || c == '_' && !strings.Contains(line, "$"):
				t.Errorf("line %d: bare %c: %s", n+1, c, line)
			}
			if depth < 0 {
				t.Fatalf("line %d closes what was not opened: %s", n+1, line)
			}
		}
		if strings.Count(line, "$")-strings.Count(line, `\$`) != 2*((strings.Count(line, "$")-strings.Count(line, `\$`))/2) {
			t.Errorf("line %d has an odd number of dollars: %s", n+1, line)
		}
		for _, m := range regexp.MustCompile(`\\(begin|end)\{(\w+)\}`).FindAllStringSubmatch(line, -1) {
			if m[1] == "begin" {
				open = append(open, m[2])
			} else if len(open) == 0 || open[len(open)-1] != m[2] {
				t.Errorf("line %d ends %s, open is %v", n+1, m[2], open)
			} else {
				open = open[:len(open)-1]
			}
		}
		if spec, ok := strings.CutPrefix(line, `\begin{tabular}{`); ok {
			columns = strings.Count(spec, "l") + strings.Count(spec, "r")
		} else if strings.HasSuffix(line, ` \\`) && cells != columns {
			t.Errorf("line %d has %d cells of %d: %s", n+1, cells, columns, line)
		}
	}
	if depth != 0 || len(open) != 0 {
		t.Errorf("%d braces and %v left open", depth, open)
	}
}

func TestLaTeXHolds(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) { checkTeX(t, render(t, ds, "latex")) })
	}
	for in, want := range map[string]string{
		`100 % & #1_{x}`: `100 \% \& \#1\_\{x\}`,
		"Größe é ñ":      `Gr\"{o}\ss{}e \'{e} \~{n}`,
		"a--b":           `a-{}-{}b`,
		"中":              `\texttt{U+4E2D}`,
		"*a* [5pt]":      `{*}a{*} {[}5pt]`,
		`c:\x^2~`:        `c:\textbackslash{}x\textasciicircum{}2\textasciitilde{}`,
	} {
		if got := tex(in); got != want && in != "a--b" {
			t.Errorf("%s: got %s, want %s", in, got, want)
		} else if strings.Contains(got, "--") {
			t.Errorf("%s: got %s, which is a dash", in, got)
		}
	}
}

func TestLaTeXCompiles(t *testing.T) {
	pdflatex, err := exec.LookPath("pdflatex")
	if err != nil {
		t.Skip("pdflatex is not installed (scripts/install-deps test): the documents are checked for structure alone")
	}
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "results.tex"), []byte(render(t, ds, "latex")), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(pdflatex, "-no-shell-escape", "-halt-on-error", "-interaction=nonstopmode", "results.tex")
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
			if _, err := os.Stat(filepath.Join(dir, "results.pdf")); err != nil {
				t.Error(err)
			}
			told, err := os.ReadFile(filepath.Join(dir, "results.log"))
			if err != nil {
				t.Fatal(err)
			}
			for _, box := range regexp.MustCompile(`(?m)^Overfull .*`).FindAllString(string(told), -1) {
				t.Errorf("the page is too small: %s", box)
			}
		})
	}
}

// TestPathColumns: the paths of a transfer over several radios are lists in the order
// of the radios; every other attempt has empty fields.
func TestPathColumns(t *testing.T) {
	two := attemptRow{Attempt: &report.Attempt{Paths: []contract.PathResult{{Device: "radio0", Address: "10.77.0.1", Bytes: 3, Share: 0.75}, {Address: "10.78.0.1", Bytes: 1, Share: 0.25}}}}
	got := map[string]string{}
	for _, c := range trialColumns() {
		if strings.HasPrefix(c.name, "path_") {
			got[c.name] = c.value(two)
			if empty := c.value(attemptRow{Attempt: &report.Attempt{}}); empty != "" {
				t.Errorf("%s of a transfer over one radio is %q", c.name, empty)
			}
		}
	}
	want := map[string]string{"path_devices": "radio0 10.78.0.1", "path_bytes": "3 1", "path_shares": "0.75 0.25"}
	if !maps.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
}

// TestEstimatesAreTold: every text that a person reads says which throughput is an
// estimate, for as long as an attempt counts with one.
func TestEstimatesAreTold(t *testing.T) {
	ds := reporttest.Campaign(reporttest.Quickstart())
	a := &ds.Runs[0].Trials[0].Attempts[0]
	a.Flows = []report.Flow{{SizeBytes: 1000, Elapsed: time.Second, Bound: time.Second}, {SizeBytes: 1000, Elapsed: time.Second, Bound: time.Second}}
	for _, format := range []string{"table", "markdown", "latex"} {
		if s := render(t, ds, format); !strings.Contains(strings.ReplaceAll(s, "\n", " "), "The throughput of 1 attempt with several flows is an estimate") {
			t.Errorf("%s does not say that a throughput is an estimate:\n%s", format, s)
		}
	}
	a.Window = &report.CommonWindow{Length: time.Second, Bytes: []int64{1000, 1000}}
	for _, format := range []string{"table", "markdown", "latex"} {
		if s := render(t, ds, format); strings.Contains(s, "estimate") {
			t.Errorf("%s names an estimate where there is none:\n%s", format, s)
		}
	}
}

// Radios of 75, 150 and 300 bit/s: every file has digits that tell them apart, and no spread
// is zero that is not.
func TestSlowRadios(t *testing.T) {
	var runs []report.Run
	for i, rate := range []float64{0.0073, 0.0149, 0.0293} {
		slow := reporttest.Treatment{Name: "tcp", Label: "TCP", Protocol: "tcp", KBps: rate}
		vegas := slow
		vegas.Name, vegas.Label = "vegas", "TCP Vegas"
		runs = append(runs, reporttest.NewRun("r-"+whole(i), "slow", "Slow link", "p2p", "Two laptops", 4<<10, 3, slow, vegas))
		runs[i].Sheet.Limits.Transfer = time.Hour // none of them takes as long
	}
	ds := reporttest.Campaign(runs...)
	for i := range report.Summarize(ds) {
		for _, r := range report.Summarize(ds)[i].Rows {
			bytes := *r.AverageKBps * 1024
			in := func(format, want string) {
				t.Helper()
				if s := render(t, ds, format); !strings.Contains(s, want) {
					t.Errorf("%s: %q is not in it:\n%s", format, want, s)
				}
			}
			text := wording.Number(&bytes)
			in("table", "  "+text+"  ")
			in("table", "B/s  ")
			in("markdown", "| Treatment | Valid | Average, B/s |")
			in("markdown", "| "+text+" |")
			in("latex", "throughput in B/s (B: bytes)")
			in("latex", "& "+text+" ")
			in("csv", ","+nine(r.AverageKBps)+","+nine(r.MaxKBps)+","+nine(r.MinKBps)+","+nine(r.SDKBps)+",")
			in("svg", "Throughput (B/s)")
			in("svg", "iteration 1: "+wording.Number(first(ds, i, r.Treatment))+" B/s")
			in("cdf-svg", "Throughput (B/s)")
			if len(nine(r.AverageKBps)) < 11 || strings.Trim(wording.Number(r.SDKBps), "0.") == "" {
				t.Errorf("%s, SD %s", nine(r.AverageKBps), wording.Number(r.SDKBps))
			}
		}
	}
	for _, format := range []string{"table", "markdown", "latex"} {
		if s := render(t, ds, format); strings.Contains(s, " 0.00 ") || strings.Contains(s, "KB/s") {
			t.Errorf("%s:\n%s", format, s)
		}
	}
}

// first is the throughput of a treatment's first trial in a run, in B/s.
func first(ds *report.Dataset, run int, treatment string) *float64 {
	for i := range ds.Runs[run].Trials {
		if t := &ds.Runs[run].Trials[i]; t.Treatment == treatment {
			x := t.Counted().ThroughputBytesPerSecond()
			return &x
		}
	}
	return nil
}
