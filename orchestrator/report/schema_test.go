package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

var update = flag.Bool("update", false, "write docs/results.schema.json anew")

const schemaFile = "../../docs/results.schema.json"

// The schema that comes with the documents is that of this program's export.
func TestSchemaIsWritten(t *testing.T) {
	s, err := report.Schema()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(schemaFile, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(schemaFile); err != nil || !bytes.Equal(have, b) {
		t.Errorf("%s is not the schema of the export (%v): go test ./orchestrator/report -update writes it anew", schemaFile, err)
	}
}

// validator is of the file that comes with the documents.
func validator(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	b, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestExportsFollowTheSchema(t *testing.T) {
	schema := validator(t)
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := report.Analyse(ds, report.Options{Bootstrap: true}).WriteJSON(&b); err != nil {
				t.Fatal(err)
			}
			var document map[string]any
			if err := json.Unmarshal(b.Bytes(), &document); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(document); err != nil {
				t.Error(err)
			}
			// What the schema does not know is not in an export.
			document["dataset"].(map[string]any)["unknown"] = 1
			if schema.Validate(document) == nil {
				t.Error("an unknown field passed")
			}
		})
	}
}
