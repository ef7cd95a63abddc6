package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// parts are all places of a tree of JSON below the given keys, each as its way from there.
func parts(x any, at []string) (out [][]string) {
	add := func(key string, below any) {
		way := append(slices.Clone(at), key)
		out = append(append(out, way), parts(below, way)...)
	}
	switch x := x.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			add(key, x[key])
		}
	case []any:
		for i := range x {
			add(strconv.Itoa(i), x[i])
		}
	}
	return out
}

// without is a copy of a tree in which what is at a place is not there. In a list its place
// may stay, empty.
func without(t *testing.T, x any, way []string, emptied bool) any {
	t.Helper()
	last := len(way) == 1
	switch x := x.(type) {
	case map[string]any:
		out := maps.Clone(x)
		if delete(out, way[0]); !last {
			out[way[0]] = without(t, x[way[0]], way[1:], emptied)
		}
		return out
	case []any:
		out := slices.Clone(x)
		i, err := strconv.Atoi(way[0])
		require.NoError(t, err)
		switch {
		case !last:
			out[i] = without(t, x[i], way[1:], emptied)
		case emptied:
			out[i] = nil
		default:
			out = slices.Delete(out, i, i+1)
		}
		return out
	}
	t.Fatalf("nothing at %v", way)
	return nil
}

// rehashed is a file whose run sheets have the hashes of what they are now; false: they
// cannot be read.
func rehashed(b []byte) ([]byte, bool) {
	var d struct {
		Format  int             `json:"format"`
		Dataset *report.Dataset `json:"dataset"`
	}
	if json.Unmarshal(b, &d) != nil || d.Dataset == nil {
		return b, false
	}
	for i := range d.Dataset.Runs {
		if r := &d.Dataset.Runs[i]; r.Sheet != nil {
			sheet, err := r.Sheet.Encode()
			if err != nil {
				return b, false
			}
			r.SheetHash = runsheet.Hash(sheet)
		}
	}
	out, err := json.Marshal(d)
	return out, err == nil
}

// Whatever is missing in a file, it is read or refused, and nothing panics. A part is taken
// out in a place of each shape; sheets get the hash of what is left of them.
func TestReadImportOfMissingParts(t *testing.T) {
	for name, ds := range map[string]*report.Dataset{"probed": reporttest.Probed(), "eventful": reporttest.Eventful(), "required": reporttest.Required(),
		"stopped": reporttest.Stopped(), "swept": reporttest.Swept()} {
		t.Run(name, func(t *testing.T) {
			ds.Campaign, ds.Complete = "their4xq", true
			if name != "probed" { // whose runs differ
				ds.Runs = ds.Runs[len(ds.Runs)-1:]
			}
			for i := range ds.Runs {
				ds.Runs[i].ID = fmt.Sprintf("their4xq-%d", 1+i)
			}
			var whole bytes.Buffer
			require.NoError(t, report.Analyse(ds, report.Options{}).WriteJSON(&whole))
			b, ok := rehashed(whole.Bytes()) // without its tables
			require.True(t, ok)
			_, err := report.ReadImport(b)
			require.NoError(t, err)
			var tree any
			require.NoError(t, json.Unmarshal(b, &tree))
			seen := map[string]bool{}
			for _, way := range parts(tree, nil) {
				shape := placeInList.ReplaceAllString(strings.Join(way, "."), ".*")
				rule := strings.Contains(shape, ".stop") || strings.Contains(shape, ".looks")
				if seen[shape] || name == "stopped" && !rule { // its statistics take long
					continue
				}
				seen[shape] = true
				for _, emptied := range []bool{false, true} {
					if emptied && !strings.HasSuffix(shape, "*") {
						continue // the same as one that is not there
					}
					b, err := json.Marshal(without(t, tree, way, emptied))
					require.NoError(t, err)
					if strings.Contains(shape, ".sheet") {
						b, _ = rehashed(b) // as it is where it cannot be
					}
					_, _ = report.ReadImport(b)
				}
			}
			require.Greater(t, len(seen), 5)
		})
	}
}

var placeInList = regexp.MustCompile(`\.[0-9]+`)

// A probe without a part that every driver reports is refused with one sentence.
func TestReadImportOfIncompleteProbes(t *testing.T) {
	whole := exported(t, func(ds *report.Dataset) {
		ds.Runs = reporttest.Probed().Runs
		for i := range ds.Runs {
			r := &ds.Runs[i]
			r.ID = fmt.Sprintf("their4xq-%d", 1+i)
			sheet, err := r.Sheet.Encode()
			require.NoError(t, err)
			r.SheetHash = runsheet.Hash(sheet)
		}
	})
	_, err := report.ReadImport([]byte(whole))
	require.NoError(t, err)
	for part, want := range map[string]string{
		"held_delay": "probe 0 (capacity): probe with a capacity without held_delay",
		"end":        `probe 0 (capacity): probe with capacity.end "", expected one of`,
		"held_sent":  "probe 0 (capacity): probe with capacity.held_sent 0, expected at least",
		"delay":      "probe 0 (voice): probe with 2970 received, expected delays exactly where packets arrived",
	} {
		from := fmt.Sprintf("%q: ", part)
		require.Positive(t, strings.Count(whole, from), part)
		_, err := report.ReadImport([]byte(strings.Replace(whole, from, `"x": `, 1)))
		require.ErrorContains(t, err, `run "their4xq-`)
		require.ErrorContains(t, err, want)
	}
}
