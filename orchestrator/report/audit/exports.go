package audit

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Export is one exported file.
type Export struct {
	Name string // results.csv, trials.csv, results.json, results.md, samples.csv
	From string // its path, or where else it comes from
	Open func() (io.ReadCloser, error)
}

// checkExports holds exported files against the journals.
func (a *auditor) checkExports(values []value) error {
	c := a.check(Exports)
	switch {
	case !a.history.seen:
		c.skip("there is no record of the leading node")
		return nil
	case len(a.run.Exports) == 0:
		c.skip("no exported files were given")
		return nil
	case !a.run.Ended():
		c.skip("the run is under way: its exports change")
		return nil
	}
	x := &exported{a: a, values: values}
	x.names, x.by = a.summaries(values)
	stored := 0
	for i := range values {
		if values[i].rate > 0 && !values[i].derived {
			stored++
		}
	}
	if stored > 0 {
		c.note("the rates of %d attempts of several flows that times bound are held against the store's, not computed again", stored)
	}
	older, marked := a.beforeMarks()
	for i := range a.run.Exports {
		e := &a.run.Exports[i]
		found, err := x.file(e)
		if err != nil {
			return err
		}
		if marked && len(found.Findings) > 0 {
			y := &exported{a: older, values: older.valuesOf()}
			y.names, y.by = older.summaries(y.values)
			before, err := y.file(e)
			if err != nil {
				return err
			}
			if len(before.Findings) == 0 {
				found = before
				found.find(Finding{File: e.From}, "the mark is younger than the file: it has what was measured before an attempt was marked; export it again")
			}
		}
		c.merge(found)
	}
	return nil
}

// beforeMarks is the same run as it was before anybody marked an attempt; false: nobody has.
func (a *auditor) beforeMarks() (*auditor, bool) {
	b, run, marked := *a, *a.run, false
	b.run = &run
	run.Trials = slices.Clone(run.Trials)
	for i := range run.Trials {
		t := &run.Trials[i]
		t.Attempts = slices.Clone(t.Attempts)
		for k := range t.Attempts {
			row := &t.Attempts[k]
			if row.Mark == nil {
				continue
			}
			marked = true
			row.Verdict, row.Reason, row.Mark = row.Mark.Verdict, row.Mark.VerdictReason, nil
			if k == len(t.Attempts)-1 && t.Verdict != "" {
				t.Verdict = row.Verdict
			}
		}
	}
	return &b, marked
}

// ExportNames are the files that are checked.
var ExportNames = []string{"results.csv", "results.json", "results.md", "samples.csv", "trials.csv"}

// file checks one file.
func (x *exported) file(e *Export) (*Check, error) {
	x.c, x.from = &Check{}, e.From
	read := map[string]func(io.Reader) error{"trials.csv": x.trials, "results.csv": x.results, "results.json": x.json, "results.md": x.markdown, "samples.csv": x.samples}[e.Name]
	if read == nil {
		return x.c, nil
	}
	f, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := read(f); err != nil {
		x.c.find(Finding{File: e.From}, "it cannot be read: %s", err)
	}
	return x.c, nil
}

// exported is the check of one file after the other.
type exported struct {
	a      *auditor
	c      *Check
	values []value
	names  []string
	by     map[string]*summary
	from   string
}

func (x *exported) find(format string, args ...any) {
	x.c.find(Finding{File: x.from}, format, args...)
}

func (x *exported) findAt(f *value, format string, args ...any) {
	at := ofTrial(f.trial, f.attempt)
	at.File = x.from
	x.c.find(at, format, args...)
}

// row is a line of a CSV file by the names of its columns.
type row struct {
	columns map[string]int
	values  []string
	missing string // a column that was asked for, and is not there
}

func (r *row) text(column string) string {
	i, ok := r.columns[column]
	if !ok {
		r.missing = column
		return ""
	}
	return r.values[i]
}

func (r *row) whole(column string) int {
	n, err := strconv.Atoi(r.text(column))
	if err != nil {
		return -1
	}
	return n
}

// real is a number, NaN where there is none.
func (r *row) real(column string) float64 {
	v, err := strconv.ParseFloat(r.text(column), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// each reads the rows of this run.
func (x *exported) each(r io.Reader, f func(*row)) error {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	head, err := in.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty, expected a line with the names of the columns")
	} else if err != nil {
		return err
	}
	line := &row{columns: map[string]int{}}
	for i, name := range head {
		line.columns[strings.Clone(name)] = i
	}
	for {
		line.values, err = in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i, cell := range line.values {
			line.values[i] = textOf(cell)
		}
		if line.text("run") == x.a.run.ID {
			f(line)
		}
		if line.missing != "" {
			return fmt.Errorf("it has no column %s", line.missing)
		}
	}
}

// textOf takes the apostrophe away that keeps a spreadsheet from taking a text for a
// formula (docs/exports.md).
func textOf(cell string) string {
	rest, has := strings.CutPrefix(cell, "'")
	if bare := strings.TrimLeft(rest, "'"); has && bare != "" && strings.ContainsRune("=+-@\t\r", rune(bare[0])) {
		return rest
	}
	return cell
}

// decimals is how many decimals a number is written with, and at least so many: files of
// earlier versions have a fixed number of them, later ones nine significant digits without
// the zeros at their end.
func decimals(text string, least int) int {
	mantissa, exponent, _ := strings.Cut(text, "e")
	_, fraction, _ := strings.Cut(mantissa, ".")
	power, _ := strconv.Atoi(exponent) // 0 without one
	return max(least, len(fraction)-power)
}

// same reports whether a written number is the computed one, rounded to a number of
// decimals.
func same(written, computed float64, decimals int) bool {
	if math.IsNaN(written) || math.IsNaN(computed) {
		return math.IsNaN(written) && math.IsNaN(computed)
	}
	return math.Abs(written-computed) <= 0.501*math.Pow10(-decimals)+2e-8*math.Abs(computed)
}

func orNaN(v float64, has bool) float64 {
	if !has {
		return math.NaN()
	}
	return v
}

// trials checks trials.csv: a row for each attempt.
func (x *exported) trials(r io.Reader) error {
	left := map[key]*value{}
	for i := range x.values {
		left[key{x.values[i].trial, x.values[i].attempt}] = &x.values[i]
	}
	seen := map[key]bool{}
	counted := map[int]bool{}
	probes := 0
	err := x.each(r, func(r *row) {
		k := key{r.whole("trial"), r.whole("attempt")}
		x.c.Objects++
		if seen[k] {
			x.find("trial %d, attempt %d: a second row", k.trial, k.attempt)
			return
		}
		seen[k] = true
		f := left[k]
		if f == nil {
			if k.trial >= 0 && k.trial < len(x.a.sheet.Trials) && len(x.a.sheet.Trials[k.trial].Flows) == 0 {
				probes++
				return
			}
			x.find("trial %d, attempt %d: the file has the attempt, the journal has not", k.trial, k.attempt)
			return
		}
		delete(left, k)
		if r.text("counted") == "true" {
			if counted[k.trial] {
				x.findAt(f, "a second attempt of the trial counts")
			}
			counted[k.trial] = true
		}
		x.trial(r, f)
	})
	for i := range x.values {
		if f := &x.values[i]; err == nil && left[key{f.trial, f.attempt}] != nil {
			x.findAt(f, "the journal has the attempt, the file has not")
		}
	}
	return err
}

func (x *exported) trial(r *row, f *value) {
	if r.text("treatment") != f.treatment || r.whole("iteration") != f.iteration {
		x.findAt(f, "the file has it as %s in iteration %s, the sheet as %s in iteration %d", r.text("treatment"), r.text("iteration"), f.treatment, f.iteration)
	}
	if r.text("verdict") != f.verdict || r.text("reason") != f.reason {
		x.findAt(f, "the file has %s %s, the store %s %s", r.text("verdict"), r.text("reason"), f.verdict, f.reason)
	}
	if r.text("counted") != strconv.FormatBool(f.counted) {
		x.findAt(f, "the file has counted: %s; by the journals: %t", r.text("counted"), f.counted)
	}
	if r.text("verified") != strconv.FormatBool(f.confirmed) {
		x.findAt(f, "the file has verified: %s; by the journals: %t", r.text("verified"), f.confirmed)
	}
	if f.digest != "" && r.text("sha256") != f.digest {
		x.findAt(f, "the file has the SHA-256 %s, the journal %s", r.text("sha256"), f.digest)
	}
	if got := r.real("throughput_kb_per_s"); !same(got, orNaN(f.rate/kilobyte, f.rate > 0), decimals(r.text("throughput_kb_per_s"), 4)) {
		x.findAt(f, "the file has %s KB/s, by the journals it is %.9g", r.text("throughput_kb_per_s"), f.rate/kilobyte)
	}
	if f.derived {
		if got := r.real("elapsed_s"); !same(got, f.elapsed.Seconds(), decimals(r.text("elapsed_s"), 6)) {
			x.findAt(f, "the file has an elapsed time of %s s, the journal %.6f s", r.text("elapsed_s"), f.elapsed.Seconds())
		}
		if got := r.real("connect_s"); !same(got, orNaN(f.connect.Seconds(), f.connect > 0), decimals(r.text("connect_s"), 6)) {
			x.findAt(f, "the file has a connecting time of %s s, the journal %.6f s", r.text("connect_s"), f.connect.Seconds())
		}
	}
	x.trialControl(r, f)
	if got, err := time.Parse(time.RFC3339, r.text("started_utc")); err != nil || got.Sub(f.started).Abs() > time.Millisecond {
		x.findAt(f, "by the file it started at %q, by the journal at %s", r.text("started_utc"), f.started.UTC().Format(time.RFC3339Nano))
	}
}

// trialControl checks the columns about control packets. Files of earlier versions have
// none.
func (x *exported) trialControl(r *row, f *value) {
	for _, role := range []string{"client", "relay", "server"} {
		column := "control_packets_" + role
		if _, has := r.columns[column]; !has {
			continue
		}
		want := ""
		for _, n := range f.control {
			if n.Role == role && n.Unknown == "" {
				want = strconv.FormatInt(n.Packets, 10)
			}
		}
		if got := r.text(column); got != want {
			x.findAt(f, "the file has %q control packets at the %s, the store %q", got, role, want)
		}
	}
}

// results checks results.csv: a row for each treatment.
func (x *exported) results(r io.Reader) error {
	seen := map[string]bool{}
	err := x.each(r, func(r *row) {
		name := r.text("treatment")
		x.c.Objects++
		if seen[name] {
			x.find("treatment %s has a second row", name)
		}
		seen[name] = true
		if r.text("sheet_hash") != x.a.run.SheetHash {
			x.find("treatment %s: the sheet is %s, the run's is %s", name, r.text("sheet_hash"), x.a.run.SheetHash)
		}
		counts := map[string]int{}
		for _, n := range []string{"trials", "valid", "failed", "excluded", "not_ended", "extra_attempts"} {
			counts[n] = r.whole(n)
		}
		values, digits := map[string]float64{}, map[string]int{}
		for _, n := range valueNames {
			values[n], digits[n] = r.real(n+"_kb_per_s"), decimals(r.text(n+"_kb_per_s"), 4)
		}
		x.treatment(name, counts, values, func(name string, got, want float64) bool { return same(got, want, digits[name]) })
	})
	for _, name := range x.names {
		if err == nil && !seen[name] {
			x.find("treatment %s has no row", name)
		}
	}
	return err
}

// valueNames are the values that are computed again, as files name them.
var valueNames = []string{"average", "max", "min", "sd", "median"}

func (s *summary) value(name string) float64 {
	if s.valid == 0 {
		return math.NaN()
	}
	return map[string]float64{"average": s.mean, "max": s.most, "min": s.least, "sd": s.sd, "median": s.median}[name] / kilobyte
}

// treatment checks the counts and the values that a file has of a treatment.
func (x *exported) treatment(name string, counts map[string]int, values map[string]float64, equal func(name string, got, want float64) bool) {
	s := x.by[name]
	if s == nil {
		s = &summary{} // missing: it has no trials
	}
	for _, one := range []struct {
		name string
		want int
	}{{"trials", s.trials}, {"valid", s.valid}, {"failed", s.failed}, {"excluded", s.excluded}, {"not_ended", s.notEnded}, {"extra_attempts", s.extra}} {
		if got, has := counts[one.name]; has && got != one.want {
			x.find("treatment %s: %s is %d, by the journals %d", name, one.name, got, one.want)
		}
	}
	for _, n := range valueNames {
		if got, has := values[n]; has && !equal(n, got, s.value(n)) {
			x.find("treatment %s: %s is %.9g KB/s, by the journals %.9g", name, n, got, s.value(n))
		}
	}
}

// jsonResults is what is read of results.json.
type jsonResults struct {
	Dataset struct {
		Runs []struct {
			ID        string
			SheetHash string `json:"sheet_hash"`
			Trials    []struct {
				Trial    int
				Verdict  string
				Attempts []struct {
					Attempt   int
					Verdict   string
					Reason    string
					SizeBytes int64         `json:"size_bytes"`
					Elapsed   time.Duration `json:"elapsed_ns"`
					Connect   time.Duration `json:"connect_ns"`
					Digest    string
					Verified  bool
				}
			}
		}
	}
	Tables []struct {
		Run  string
		Rows []map[string]any
	}
}

// json checks results.json: the attempts of its dataset, and its tables.
func (x *exported) json(r io.Reader) error {
	var all jsonResults
	if err := json.NewDecoder(r).Decode(&all); err != nil {
		return err
	}
	want := map[key]*value{}
	for i := range x.values {
		want[key{x.values[i].trial, x.values[i].attempt}] = &x.values[i]
	}
	found := false
	for i := range all.Dataset.Runs {
		run := &all.Dataset.Runs[i]
		if run.ID != x.a.run.ID {
			continue
		}
		found = true
		if run.SheetHash != x.a.run.SheetHash || len(run.Trials) != len(x.a.sheet.Trials) {
			x.find("it has %d trials of the sheet %s, the run has %d of %s", len(run.Trials), run.SheetHash, len(x.a.sheet.Trials), x.a.run.SheetHash)
		}
		for j := range run.Trials {
			t := &run.Trials[j]
			for k := range t.Attempts {
				got := &t.Attempts[k]
				f := want[key{t.Trial, got.Attempt}]
				if f == nil {
					if t.Trial < 0 || t.Trial >= len(x.a.sheet.Trials) || len(x.a.sheet.Trials[t.Trial].Flows) > 0 {
						x.find("trial %d, attempt %d: the file has the attempt, or has it twice; the journal has not", t.Trial, got.Attempt)
					}
					continue
				}
				delete(want, key{t.Trial, got.Attempt})
				x.c.Objects++
				if got.Verdict != f.verdict || got.Reason != f.reason || got.Verified != f.confirmed || f.digest != "" && got.Digest != f.digest {
					x.findAt(f, "the file has %s %s, verified %t, SHA-256 %q; by journals and store it is %s %s, %t, %q", got.Verdict, got.Reason, got.Verified, got.Digest, f.verdict, f.reason, f.confirmed, f.digest)
				}
				if f.derived && (got.Elapsed != f.elapsed || got.Connect != f.connect) {
					x.findAt(f, "the file has %s after %s of connecting, the journal %s after %s", got.Elapsed, got.Connect, f.elapsed, f.connect)
				}
			}
		}
	}
	for _, f := range x.values {
		if want[key{f.trial, f.attempt}] != nil && found {
			x.findAt(&f, "the journal has the attempt, the file has not")
		}
	}
	if !found {
		x.find("its dataset does not have the run")
	}
	x.jsonTables(&all)
	return nil
}

func (x *exported) jsonTables(all *jsonResults) {
	for i := range all.Tables {
		if all.Tables[i].Run != x.a.run.ID {
			continue
		}
		for _, r := range all.Tables[i].Rows {
			name, _ := r["treatment"].(string)
			x.c.Objects++
			counts, values := map[string]int{}, map[string]float64{}
			for _, n := range []string{"trials", "valid", "failed", "excluded", "not_ended", "extra_attempts"} {
				v, _ := r[n].(float64)
				counts[n] = int(v)
			}
			for _, n := range valueNames {
				v, has := r[n+"_kb_per_s"].(float64)
				values[n] = orNaN(v, has)
			}
			x.treatment(name, counts, values, func(_ string, got, want float64) bool {
				return math.IsNaN(got) && math.IsNaN(want) || near(got, want) || math.Abs(got-want) < 1e-6
			})
		}
		return
	}
	x.find("its tables do not have the run")
}

// maxMarkdown is the largest results.md that is read.
const maxMarkdown = 64 << 20

// markdown checks the first table of the run in results.md.
func (x *exported) markdown(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, maxMarkdown))
	if err != nil {
		return err
	}
	section := ""
	for _, s := range strings.Split(string(b), "\n## ") {
		if strings.Contains(s, "\nRun "+x.a.run.ID+", sheet ") {
			section = s
			break
		}
	}
	if section == "" {
		return fmt.Errorf("it has no section that names run %s", x.a.run.ID)
	}
	perKB := kbpsIn(section)
	rows := map[string][]string{}
	for _, line := range strings.Split(section, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if name := cells[0]; strings.HasPrefix(line, "| ") && rows[name] == nil {
			rows[name] = cells
		}
	}
	for _, name := range x.names {
		s := x.by[name]
		label := x.a.sheet.Label(name)
		cells := rows[label]
		x.c.Objects++
		if len(cells) < 7 {
			x.find("the table of run %s has no row %s", x.a.run.ID, label)
			continue
		}
		if want := fmt.Sprintf("%d/%d", s.valid, s.trials); cells[1] != want {
			x.find("treatment %s: %s trials are valid, by the journals %s", name, cells[1], want)
		}
		for i, n := range []string{"average", "max", "min", "sd", "median"} {
			got, err := strconv.ParseFloat(cells[2+i], 64)
			if want := s.value(n) * perKB; !same(orNaN(got, err == nil), want, decimals(cells[2+i], 0)) {
				x.find("treatment %s: %s is %s, by the journals %.9g", name, n, cells[2+i], want)
			}
		}
	}
	return nil
}

// kbpsIn is how many of the unit that a table of throughputs names are 1 KB/s. Tables of
// earlier versions name none and are in KB/s.
func kbpsIn(section string) float64 {
	switch {
	case strings.Contains(section, "| Average, B/s |"):
		return kilobyte
	case strings.Contains(section, "| Average, MB/s |"):
		return 1. / kilobyte
	}
	return 1
}

// samples checks samples.csv: how many samples each end of each flow has, and the sum
// of their bytes.
func (x *exported) samples(r io.Reader) error {
	type sums struct {
		samples int
		bytes   int64
	}
	got := map[stream]*sums{}
	err := x.each(r, func(r *row) {
		k := stream{r.whole("trial"), r.whole("attempt"), r.whole("flow"), r.text("side")}
		s := got[k]
		if s == nil {
			s = &sums{}
			k.side = strings.Clone(k.side)
			got[k] = s
		}
		s.samples++
		n, _ := strconv.ParseInt(r.text("sent_bytes"), 10, 64)
		s.bytes += n
	})
	if err != nil {
		return err
	}
	if len(got) == 0 && len(x.a.streams) > 0 {
		x.c.note("%s has no samples of the run: they are kept for a time (docs/backup.md)", x.from)
		return nil
	}
	for k, st := range x.a.streams {
		x.c.Objects++
		s := got[k]
		if s == nil {
			s = &sums{}
		}
		if s.samples != st.samples || s.bytes != st.bytes {
			at := ofTrial(k.trial, k.attempt)
			at.File = x.from
			x.c.find(at, "flow %d (%s) has %d samples with %d bytes in sum, in the journal %d with %d", k.flow, k.side, s.samples, s.bytes, st.samples, st.bytes)
		}
		delete(got, k)
	}
	for k := range got {
		x.find("trial %d, attempt %d, flow %d (%s) has samples that the journals do not have", k.trial, k.attempt, k.flow, k.side)
	}
	return nil
}
