package audit

import (
	"encoding/json"
	"io"
	"math"
	"time"
)

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
			if d, has := r["delivery"].(map[string]any); has {
				delivery := map[string]float64{}
				for key, n := range map[string]string{"horizon_s": deliveryNames[0], "share": deliveryNames[1], "mean_s": deliveryNames[2]} {
					v, has := d[key].(float64)
					delivery[n] = orNaN(v, has)
				}
				x.delivery(name, delivery)
			}
			x.treatment(name, counts, values, func(_ string, got, want float64) bool {
				return math.IsNaN(got) && math.IsNaN(want) || near(got, want) || math.Abs(got-want) < 1e-6
			})
		}
		return
	}
	x.find("its tables do not have the run")
}
