package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report/wording"
)

// MaxImport bounds the JSON export of a campaign that is imported, in bytes.
const MaxImport = 64 << 20

var campaignForm = regexp.MustCompile(`^[a-z0-9]{4,32}$`)

// ReadImport reads the JSON export of a whole campaign that another orchestrator has
// measured. It returns an error where the campaign has not ended, where a run is not that
// of its sheet, and where a value in the file is not what this Linktrial makes of the
// attempts in it. So a changed value is found; whether somebody changed the attempts and
// computed all values anew is not.
func ReadImport(b []byte) (*Dataset, error) {
	if len(b) > MaxImport {
		return nil, fmt.Errorf("results.json of %d bytes, expected at most %d", len(b), MaxImport)
	}
	ds, err := ReadJSON(b)
	if err != nil {
		return nil, unreadable(b, err)
	}
	switch {
	case !campaignForm.MatchString(ds.Campaign):
		return nil, fmt.Errorf("results of %q, expected those of one whole campaign", ds.Campaign)
	case len(ds.Runs) == 0:
		return nil, fmt.Errorf("campaign %s has no run", ds.Campaign)
	case !ds.Complete:
		return nil, fmt.Errorf("campaign %s had not ended when it was exported: expected an export from after its end", ds.Campaign)
	}
	for i := range ds.Words {
		if w := &ds.Words[i]; w.Campaign != ds.Campaign || w.Imported != nil {
			return nil, fmt.Errorf("words of campaign %q, expected those of campaign %s, as its orchestrator exported them", wording.Clip(wording.Clean(w.Campaign), 40), ds.Campaign)
		}
	}
	seen := map[string]bool{}
	for i := range ds.Runs {
		r := &ds.Runs[i]
		if seen[r.ID] {
			return nil, fmt.Errorf("run %s is in the file twice", r.ID)
		}
		seen[r.ID] = true
		if err := checkImportedRun(ds.Campaign, r); err != nil {
			return nil, fmt.Errorf("run %q: %w", r.ID, err)
		}
	}
	var again bytes.Buffer
	if err := Analyse(ds, Options{Bootstrap: true}).WriteJSON(&again); err != nil {
		return nil, fmt.Errorf("results of campaign %s: %w", ds.Campaign, err)
	}
	if bytes.Equal(b, again.Bytes()) {
		return ds, nil
	}
	return ds, follows(b, again.Bytes())
}

// unreadable says where and why a file is no export, without the words of the decoder.
func unreadable(b []byte, err error) error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("it ends in line %d before its JSON does: it was cut, or is empty", 1+bytes.Count(b, []byte("\n")))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: %w; expected JSON as linktrial results --format json writes it", position(b, syntax.Offset), syntax)
	case errors.As(err, &wrong):
		return fmt.Errorf("%s: %s is a %s there, which it is in no export", position(b, wrong.Offset), cmp.Or(wrong.Field, "the file"), wrong.Value)
	case strings.HasPrefix(err.Error(), "results: "): // of ReadJSON itself
		if errors.Unwrap(err) == nil {
			return err
		}
	}
	return errors.New("a value in it does not have the form that exports have: it was changed, or another version of Linktrial exported it")
}

// position is the place of a byte as editors show it.
func position(b []byte, offset int64) string {
	before := b[:max(0, min(int64(len(b)), offset-1))]
	line := bytes.Count(before, []byte("\n"))
	return fmt.Sprintf("line %d, column %d", 1+line, len(before)-bytes.LastIndexByte(before, '\n'))
}

func checkImportedRun(campaign string, r *Run) error {
	number, ok := strings.CutPrefix(r.ID, campaign+"-")
	switch {
	case !ok || number == "":
		return fmt.Errorf("expected a run of campaign %s", campaign)
	case r.Imported != nil:
		return fmt.Errorf("the orchestrator that exported it had it %s: import that file", r.Imported.Text())
	case r.underWay():
		return fmt.Errorf("its state is %q, expected one of %s", r.State, strings.Join(ends, ", "))
	case r.Sheet == nil:
		return errors.New("it has no run sheet")
	}
	sheet, err := r.Sheet.Encode()
	if err != nil {
		return fmt.Errorf("run sheet: %w", err)
	}
	if hash := runsheet.Hash(sheet); hash != r.SheetHash {
		return fmt.Errorf("the run sheet has the hash %s, expected %s: it was changed, or another version of Linktrial made it; import the file with the version that exported it", hash, r.SheetHash)
	}
	if err := r.Sheet.Check(); err != nil {
		return fmt.Errorf("run sheet: %w", err)
	}
	if len(r.Trials) != len(r.Sheet.Trials) {
		return fmt.Errorf("%d trials, expected the %d of its sheet: trials were removed, or treatments left out of the export; export the whole campaign", len(r.Trials), len(r.Sheet.Trials))
	}
	for i := range r.Trials {
		if got, want := &r.Trials[i], &r.Sheet.Trials[i]; got.Index != want.Index || got.Treatment != want.Treatment || got.Iteration != want.Iteration {
			return fmt.Errorf("trial %d is number %d of treatment %q in iteration %d, expected number %d of %q in iteration %d as in its sheet",
				i, got.Index, got.Treatment, got.Iteration, want.Index, want.Treatment, want.Iteration)
		}
	}
	return checkImportedProbes(r)
}

// checkImportedProbes refuses what no driver can have reported, as a part that is missing:
// rows of probes take it to be there.
func checkImportedProbes(r *Run) error {
	for i := range r.Trials {
		for k := range r.Trials[i].Attempts {
			a := &r.Trials[i].Attempts[k]
			for n := range a.Probes {
				p := &a.Probes[n]
				if p.Metrics == nil {
					continue
				}
				if err := p.Metrics.Check(); err != nil {
					return fmt.Errorf("trial %d, attempt %d, probe %d (%s): %w; the file was changed", i, a.Attempt, n, wording.Clip(wording.Clean(p.Treatment), 40), err)
				}
			}
		}
	}
	return nil
}

// follows holds an export against what this version makes of its attempts. A field that
// the export does not have is of a later version than the one that made it, and no error.
func follows(export, made []byte) error {
	got, err := tree(export)
	if err != nil {
		return err
	}
	want, err := tree(made)
	if err != nil {
		return err
	}
	leaveEarlierConclusions(got)
	return differs("", got, want)
}

// leaveEarlierConclusions takes the conclusions out of tables without times to delivery: they
// are of a version before these, which concluded from averages wherever trials had failed.
func leaveEarlierConclusions(export any) {
	fields, _ := export.(map[string]any)
	tables, _ := fields["tables"].([]any)
	for _, t := range tables {
		table, _ := t.(map[string]any)
		rows, _ := table["rows"].([]any)
		if !slices.ContainsFunc(rows, func(r any) bool { row, _ := r.(map[string]any); return row["delivery"] != nil }) {
			delete(table, "conclusion")
		}
	}
}

func tree(b []byte) (out any, err error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return out, dec.Decode(&out)
}

// differs returns where, and in what, an export differs from what was made again of it.
func differs(at string, got, want any) error {
	if empty(got) && empty(want) { // earlier versions wrote null for a list without entries
		return nil
	}
	switch got := got.(type) {
	case map[string]any:
		want, ok := want.(map[string]any)
		if !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(got)) {
			made, known := want[key]
			if !known {
				if empty(got[key]) {
					continue
				}
				return fmt.Errorf("%s is not known to this version of Linktrial: a later version exported the file, or it was changed; import it with the version that exported it", strings.TrimPrefix(at+"."+key, "."))
			}
			if err := differs(strings.TrimPrefix(at+"."+key, "."), got[key], made); err != nil {
				return err
			}
		}
		return nil
	case []any:
		want, ok := want.([]any)
		if !ok || len(got) != len(want) {
			break
		}
		for i := range got {
			if err := differs(fmt.Sprintf("%s[%d]", at, i)+named(got[i]), got[i], want[i]); err != nil {
				return err
			}
		}
		return nil
	case json.Number:
		if want, ok := want.(json.Number); ok && sameNumber(got, want) {
			return nil
		}
	case string:
		if got == want || earlierWords.Replace(got) == want {
			return nil
		}
	default:
		if got == want {
			return nil
		}
	}
	return fmt.Errorf("%s is %s, but the attempts in the file give %s: the file was changed, or exported with --reference or by a version with other statistics; export the whole campaign again, with this version", cmp.Or(at, "the file"), brief(got), brief(want))
}

// empty reports whether a value is one that exports may leave out.
func empty(x any) bool {
	switch x := x.(type) {
	case json.Number:
		return x == "0"
	case map[string]any:
		return len(x) == 0
	case []any:
		return len(x) == 0
	}
	return x == nil || x == "" || x == false
}

// named names a part of a list by the run or treatment that it is of.
func named(x any) string {
	fields, _ := x.(map[string]any)
	for _, key := range []string{"run", "id", "treatment"} {
		if name, ok := fields[key].(string); ok {
			return " (" + wording.Clip(wording.Clean(name), 40) + ")"
		}
	}
	return ""
}

// sameNumber reports whether two numbers are the same, however they are written.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y && (strings.ContainsAny(string(a), ".eE") || strings.ContainsAny(string(b), ".eE"))
}

func brief(x any) string {
	b, err := json.Marshal(x)
	if err != nil {
		return "a value that cannot be shown"
	}
	return wording.Clip(wording.Clean(string(b)), 60)
}
