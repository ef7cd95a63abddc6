package lab

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/radio"
	"linktrial/lab/uml"
)

// What a virtual rehearsal's guests wrote of transfers is where a rehearsal in real time leaves
// it, and nothing is there of an earlier one.
func TestKeepLogs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[data]") // as a person may call it
	guests := filepath.Join(dir, "virtual", "c1")
	write := func(parts ...string) {
		t.Helper()
		path := filepath.Join(parts...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(path), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(dir, RehearsalAgents, "client", "runs", "c0-1", "logs", "old.client.sqlog")
	write(guests, "c1-1", "client", "runs", "c1-1", "journal.jsonl")
	write(guests, "c1-1", "client", "runs", "c1-1", "trial-0000-1.pcapng")
	write(guests, "c1-1", "client", "runs", "c1-1", "logs", "a.client.sqlog")
	write(guests, "c1-1", "server", "runs", "c1-1", "logs", "a.server.sqlog")
	write(guests, "c1-1", "relay", "runs", "c1-1", "journal.jsonl")

	v := &virtual{rehearsal: &rehearsal{s: &setting.Settings{Data: dir}}}
	result := uml.Result{Sheets: []uml.SheetResult{{Run: "c1-1", Journals: map[radio.Role]string{
		radio.RoleClient: filepath.Join(guests, "c1-1", "client", "runs", "c1-1", "journal.jsonl"),
		radio.RoleServer: filepath.Join(guests, "c1-1", "server", "runs", "c1-1", "journal.jsonl"), // there is none
		radio.RoleRelay:  filepath.Join(guests, "c1-1", "relay", "runs", "c1-1", "journal.jsonl"),
	}}}}
	if err := v.keepLogs(uml.RunConfig{Dir: guests}, result); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(filepath.Join(dir, RehearsalAgents), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			path, err = filepath.Rel(dir, path)
			got = append(got, path)
		}
		return err
	})
	want := []string{
		"agents/rehearsal/client/runs/c1-1/journal.jsonl",
		"agents/rehearsal/client/runs/c1-1/logs/a.client.sqlog",
		"agents/rehearsal/client/runs/c1-1/trial-0000-1.pcapng",
		"agents/rehearsal/relay/runs/c1-1/journal.jsonl",
		"agents/rehearsal/server/runs/c1-1/logs/a.server.sqlog",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("there are %q, expected %q: %v", got, want, err)
	}
}
