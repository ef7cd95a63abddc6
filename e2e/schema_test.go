package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// The JSON export of a campaign of every kind that a plan can express, with every
// outcome, follows the schema that comes with the documents.
func TestExportsOfKindsFollowTheSchema(t *testing.T) {
	text, err := os.ReadFile("../docs/results.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &served{program: newProgram(t), addr: freeAddr(t)}
	store, err := filepath.Abs("kinds/store.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(filepath.Dir(store), "trusted-keys")
	if _, stderr, code := p.run("backup", "restore", store, "--trusted-keys", keys); code != 0 {
		t.Fatalf("restoring the fixture: exit %d: %s", code, stderr)
	}
	p.up()
	plans, err := os.ReadDir("kinds/plans")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Campaigns []struct{ ID, Plan string }
	}
	if refusal := p.call("ResultService/ListCampaigns", struct{}{}, &got); refusal != "" {
		t.Fatal(refusal)
	}
	if len(got.Campaigns) != len(plans) {
		t.Errorf("the fixture has %d campaigns, expected one of each of %d plans", len(got.Campaigns), len(plans))
	}
	for _, c := range got.Campaigns {
		t.Run(c.Plan, func(t *testing.T) {
			r, err := http.Get("http://" + p.addr + "/download?" + url.Values{"format": {"json"}, "id": {c.ID}}.Encode())
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			b, err := io.ReadAll(r.Body)
			if err != nil || r.StatusCode != http.StatusOK {
				t.Fatalf("%s (%v): %.300s", r.Status, err, b)
			}
			var document map[string]any
			if err := json.Unmarshal(b, &document); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(document); err != nil {
				t.Error(err)
			}
		})
	}
}
