package contract

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of metrics to docs/driver-contract.md")

func TestMetrics(t *testing.T) {
	kinds := map[MetricKind]bool{Cumulative: true, Counter: true, Gauge: true}
	units := map[string]string{"ns": "_ns", "B": "_bytes", "µs": "_us", "bit/s": "_bps", "count": ""}
	for _, f := range Metrics {
		if suffix, known := units[f.Unit]; !known || !strings.HasSuffix(f.Name, suffix) {
			t.Errorf("%s has unit %q, which its name does not end in", f.Name, f.Unit)
		}
		if !kinds[f.Kind] || f.Meaning == "" || !regexp.MustCompile(`^[a-z_]+$`).MatchString(f.Name) {
			t.Errorf("%+v lacks a kind, a meaning or a name", f)
		}
		if (f.Kind == Counter) != (f.Unit == "count") {
			t.Errorf("%s is a %s in %s", f.Name, f.Kind, f.Unit)
		}
	}
	if n := reflect.TypeFor[Sample]().NumField(); len(Metrics) != n-1 {
		t.Errorf("%d metrics of %d fields, expected all but More", len(Metrics), n)
	}
	if Metrics[0].Name != ElapsedNS {
		t.Errorf("the first metric is %s, expected %s", Metrics[0].Name, ElapsedNS)
	}
}

// A metric reads, and hands to decoders, the field that JSON knows by its name.
func TestMetricFields(t *testing.T) {
	for i := range Metrics {
		f := &Metrics[i]
		var s Sample
		if x := f.Value(&s); f.Required && x != 0 || !f.Required && !math.IsNaN(x) {
			t.Errorf("%s of an empty sample is %v", f.Name, x)
		}
		if err := json.Unmarshal(fmt.Appendf(nil, `{%q: 7}`, f.Name), &s); err != nil {
			t.Fatal(err)
		}
		if f.Value(&s) != 7 || f.Real && *f.Float(&s) != 7 || !f.Real && *f.Whole(&s) != 7 {
			t.Errorf("%s is %v after 7 was decoded", f.Name, f.Value(&s))
		}
		if (f.Float(&s) != nil) == (f.Whole(&s) != nil) {
			t.Errorf("%s is both whole and real, or neither", f.Name)
		}
		if err := json.Unmarshal([]byte("8"), f.Field(&s)); err != nil || f.Value(&s) != 8 {
			t.Errorf("%s is %v (%v) after 8 was written to its field", f.Name, f.Value(&s), err)
		}
		if err := json.Unmarshal([]byte("-1"), f.Field(&s)); err != nil || s.check() == nil || !strings.Contains(s.check().Error(), f.Name) {
			t.Errorf("%s may be negative: %v, %v", f.Name, err, s.check())
		}
	}
}

// One more field with tags is one more row.
func TestMetricAdded(t *testing.T) {
	type longer struct {
		Sample   int64            `json:"elapsed_ns" unit:"ns" kind:"cumulative" meaning:"m"`
		ECNMarks *int64           `json:"ecn_marks,omitempty" unit:"count" kind:"counter" meaning:"packets marked by the network"`
		More     map[string]int64 `json:"more"`
	}
	got := metricsOf(reflect.TypeFor[longer]())
	want := Metric{Name: "ecn_marks", Unit: "count", Kind: Counter, Meaning: "packets marked by the network", field: 1}
	if len(got) != 2 || got[1] != want {
		t.Errorf("%+v, expected %+v at the end", got, want)
	}
}

// The document's table of metrics is made from [Metrics]; -update writes it.
func TestMetricsInDocument(t *testing.T) {
	const path = "../../docs/driver-contract.md"
	const head = "| field | unit | kind | |\n|---|---|---|---|\n"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(b), head)
	if !found {
		t.Fatalf("%s has no table that begins with\n%s", path, head)
	}
	end := strings.Index(rest, "| `more` |")
	if end < 0 {
		t.Fatalf("%s: the table of metrics does not end with the row of `more`", path)
	}
	var rows strings.Builder
	for _, f := range Metrics {
		required := ""
		if f.Required {
			required = "; required"
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s%s |\n", f.Name, f.Unit, f.Kind, inDocument(f.Meaning), required)
	}
	if rows.String() == rest[:end] {
		return
	}
	if !*update {
		t.Fatalf("%s differs from contract.Metrics; go test ./protocols/contract -update writes\n%s", path, rows.String())
	}
	if err := os.WriteFile(path, []byte(before+head+rows.String()+rest[end:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

// inDocument is a meaning with the names of metrics as documents write them.
func inDocument(meaning string) string {
	return regexp.MustCompile(`[a-z]+_bytes`).ReplaceAllString(meaning, "`$0`")
}
