package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
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

// Sources of telemetry are written by code of their own: those of every kind follow the
// schema as well.
func TestTelemetrySourcesFollowTheSchema(t *testing.T) {
	s, err := report.Schema()
	require.NoError(t, err)
	schema, err := s.Defs["telemetry"].Resolve(nil)
	require.NoError(t, err)
	sources := radio.EmulatedTelemetry()
	for _, d := range telemetrysource.Kinds() {
		own := telemetrysource.Own(d.Kind, "own", "a test")
		if d.PlaceKey != "" {
			own.Values = []telemetrysource.Value{{Name: "x", Place: "p", Unit: "dB", Scale: 2, Counter: true}}
		}
		sources = append(sources, own)
	}
	sources = append(sources, telemetrysource.Source{Name: "secret", Kind: telemetrysource.KindSNMP,
		Settings: &telemetrysource.SNMP{Access: &telemetrysource.SNMPAccess{Version: "3", User: "u", Auth: "sha", AuthEnv: "A", Privacy: "aes", PrivacyEnv: "P"}}})
	for _, source := range sources {
		b, err := json.Marshal(source)
		require.NoError(t, err)
		var v any
		require.NoError(t, json.Unmarshal(b, &v))
		require.NoError(t, schema.Validate(v), string(b))
	}
}
