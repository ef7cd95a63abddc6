package trial

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linktrial/cmd/linktrial/setting"
)

func TestExpectedMissing(t *testing.T) {
	text := "treatments:\n  - {name: a, protocol: tcp}\n  - {name: b, protocol: tcp, missing: later}\nmixes:\n  - {name: both, flows: [{treatment: a}, {treatment: b}]}\n  - {name: one, flows: [{treatment: a}]}\n"
	if got := slices.Sorted(maps.Keys(expectedMissing([]byte(text)))); !slices.Equal(got, []string{"b", "both"}) {
		t.Errorf("got %v", got)
	}
}

func TestWritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, good := range []string{dir, filepath.Join(dir, "a", "b")} {
		if err := Writable(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{file, filepath.Join(file, "a"), "/proc/results/x"} {
		if err := Writable(bad); err == nil || !strings.Contains(err.Error(), "results cannot be written to "+bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestMissingErr(t *testing.T) {
	if err := (Missing)(nil).Err(); err != nil {
		t.Error(err)
	}
	want := "1 treatment not run: x: no such kernel; where that is expected, the plan gives the reason with missing"
	if err := (Missing{"x: no such kernel"}).Err(); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// A folder that cannot be written is found before an orchestrator is asked.
func TestResultsOutIsCheckedFirst(t *testing.T) {
	cmd := newResults(&setting.Settings{Orchestrator: "http://127.0.0.1:1", Data: t.TempDir()})
	cmd.SetArgs([]string{"--out", "/proc/results"})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "results cannot be written to /proc/results: ") {
		t.Errorf("%v", err)
	}
}
