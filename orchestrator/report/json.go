package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"linktrial/orchestrator/report/wording"
)

// JSONFormat is the version of the JSON export. Fields may be added within a
// version; a changed meaning or a removed field makes a new one. In version 1, ratio was
// the geometric mean with Student's interval, wilcoxon_… were of the differences, and the
// throughputs of the bounds were by the bounds' own clock. Up to version 2, failed had the
// excluded trials, too.
const JSONFormat = 3

// document is the JSON export: all there is, and the tables made of it.
type document struct {
	Format  int        `json:"format"`
	Dataset *Dataset   `json:"dataset"`
	Tables  []RunTable `json:"tables"`
	// Methods name how each interval and each P of the tables is made, by the field.
	Methods map[string]string `json:"methods"`
	// OverRuns are of each set of runs that differ in radio, topology or campaign alone.
	OverRuns []OverRuns `json:"over_runs,omitempty"`
}

// Method says for people how a field of the tables is made that is an interval or a P, by the
// field's name in the export; empty: it is neither.
func Method(field string) string { return methods[field] }

var methods = map[string]string{
	"failed_share_ci95":               "score interval of Wilson",
	"average_ci95_kb_per_s":           "Student's t, not below 0",
	"average_bootstrap_ci95_kb_per_s": "BCa bootstrap",
	"flow_average_ci95_kb_per_s":      "Student's t, not below 0",
	"delay_mean_ci95_ms":              "Student's t, not below 0",
	"difference_ci95_kb_per_s":        "inverts Student's test for pairs",
	"difference_t_p":                  "Student's test for pairs of the differences, two-sided",
	"ratio_ci95":                      "inverts Wilcoxon's signed-rank test; around the estimate of Hodges and Lehmann",
	"wilcoxon_p":                      "Wilcoxon's signed-rank test of the logarithms of the ratios, two-sided",
	"wilcoxon_p_holm":                 "wilcoxon_p, corrected after Holm for the comparisons of the run",
	"gain_ci95_percent":               "delta method with Student's t",
	"mean_ratio_ci95":                 "Student's t of the runs' mean logarithms of the ratios (Kalibera and Jones)",
	"ci95":                            "of a requirement, by its metric: score interval of Wilson (delivered, failures), that of ratio_ci95 (ratio_to), else Student's t, not below 0; of delays widened by the clocks' uncertainty, of loss not narrower than Wilson's of all packets",
}

// WriteJSON writes the export of everything. One run is encoded at a time: the text of a
// large campaign takes several times the memory that the campaign itself takes.
func (v *Analysis) WriteJSON(w io.Writer) error {
	head := *v.Dataset
	head.Runs = nil
	frame, err := indented(document{JSONFormat, &head, nil, methods, HoldRuns(v)}, "")
	if err != nil {
		return err
	}
	// Only the dataset has these keys at these depths, and no text has a line break.
	before, rest, _ := bytes.Cut(frame, []byte("\n  \"runs\": null"))
	between, after, _ := bytes.Cut(rest, []byte("\n \"tables\": null"))
	out := &sequence{w: w}
	out.write(before)
	writeList(out, "\n  \"runs\": ", "  ", withLists(v.Dataset.Runs))
	out.write(between)
	writeList(out, "\n \"tables\": ", " ", v.Tables)
	out.write(append(after, '\n'))
	return out.err
}

// withLists is the runs with empty lists and maps where they have none, as a queued run
// has no trials: what reads the export has lists everywhere.
func withLists(runs []Run) []Run {
	runs = slices.Clone(runs)
	for i := range runs {
		r := &runs[i]
		fillLists(r)
		r.Provenance = maps.Clone(r.Provenance)
		for node, p := range r.Provenance {
			fillLists(&p)
			r.Provenance[node] = p
		}
		if slices.ContainsFunc(r.Trials, func(t Trial) bool { return t.Attempts == nil }) {
			r.Trials = slices.Clone(r.Trials)
			for k := range r.Trials {
				fillLists(&r.Trials[k])
			}
		}
	}
	return runs
}

// fillLists makes the nil slices and maps among the fields of *record empty ones.
func fillLists[T any](record *T) {
	v := reflect.ValueOf(record).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Slice && f.IsNil():
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
		case f.Kind() == reflect.Map && f.IsNil():
			f.Set(reflect.MakeMap(f.Type()))
		}
	}
}

// sequence keeps the first error of several writes.
type sequence struct {
	w   io.Writer
	err error
}

func (s *sequence) write(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
}

// writeList writes a list as an encoder does that indents it by prefix.
func writeList[T any](out *sequence, key, prefix string, list []T) {
	out.write([]byte(key))
	if len(list) == 0 {
		out.write([]byte("[]"))
		return
	}
	for i := range list {
		if out.err != nil {
			return
		}
		b, err := indented(&list[i], prefix+" ")
		if err != nil {
			out.err = err
			return
		}
		out.write([]byte(map[bool]string{true: "[", false: ","}[i == 0] + "\n" + prefix + " "))
		out.write(b)
	}
	out.write([]byte("\n" + prefix + "]"))
}

func indented(x any, prefix string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, " ")
	err := enc.Encode(x)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// ReadJSON reads the dataset of a JSON export, so that every other format can be
// made of it again. Its tables are not read: they follow from the dataset, which is the
// same in all versions.
func ReadJSON(b []byte) (*Dataset, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber() // options of treatments keep their digits
	var d struct {
		Format  int      `json:"format"`
		Dataset *Dataset `json:"dataset"`
	}
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("results: more than one document")
	}
	if d.Format < 1 || d.Format > JSONFormat {
		return nil, fmt.Errorf("results: format %d, this Linktrial reads up to %d", d.Format, JSONFormat)
	}
	if d.Dataset == nil {
		return nil, errors.New("results: no dataset")
	}
	for i, note := range d.Dataset.Notes {
		d.Dataset.Notes[i] = earlierWords.Replace(note)
	}
	if err := checkAllWords(d.Dataset.Words); err != nil {
		return nil, err
	}
	return d.Dataset, nil
}

// checkAllWords checks what directors added: pages and reports show it as it is.
func checkAllWords(all []Words) error {
	seen := map[string]bool{}
	for i := range all {
		w := &all[i]
		if err := w.Check(); err != nil {
			return fmt.Errorf("results: words of campaign %q: %s", wording.Clip(w.Campaign, 40), err.Error())
		}
		if seen[w.Campaign] {
			return fmt.Errorf("results: words of campaign %q are in the file twice", wording.Clip(w.Campaign, 40))
		}
		seen[w.Campaign] = true
	}
	return nil
}

// earlierWords brings sentences of exports that earlier versions made, which called a value a
// figure, into the words of today: the same results make the same sentences.
var earlierWords = strings.NewReplacer(
	"published figures are not held against them.", "published values are not held against them.",
	"samples were gone when the figure was first made of them.", "samples were gone when the value was first made of them.",
	"The plan's published figures are left out, as it", "The plan's published values are left out, as it",
	"so that their figures may be the machine's (", "so that their values may be the machine's (",
	" valid figures of both, and a comparison takes ", " valid values of both, and a comparison takes ",
)
