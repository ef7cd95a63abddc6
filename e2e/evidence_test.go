package e2e

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/internal/testkind"
)

// What a campaign's report rests on is packed, is checked on a machine that knows nothing of
// it, and gives every exported file and the report again, byte for byte. Of a bag with one
// changed byte the file is named.
func TestEvidence(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	stdout, stderr, code := p.run("rehearse", "--virtual", p.plan("searched", searched))
	if code != 0 {
		t.Fatalf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	here := func(args ...string) (string, int) {
		t.Helper()
		cmd := p.command(args...)
		cmd.Env = append(os.Environ(), "LINKTRIAL_DATA="+p.data, "LINKTRIAL_ORCHESTRATOR=")
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	campaign := p.exported().Campaign
	if out, code := here("report", "words", campaign, "--title", "Field trial", "--summary", "It rained."); code != 0 {
		t.Fatalf("words: exit code %d:\n%s", code, out)
	}
	bag := filepath.Join(p.work, "trial.zip")
	if out, code := here("evidence", "pack", campaign, "--out", bag); code != 0 || !strings.Contains(out, "SHA256:") {
		t.Fatalf("pack: exit code %d:\n%s", code, out)
	}
	if out, code := here("evidence", "verify", bag); code != 0 || !strings.Contains(out, "byte for byte the same, 0 differ, 0 were not made again.") {
		testkind.Failed(t, "verify: exit code %d:\n%s", code, out)
	}
	for _, file := range []string{"/journal.jsonl", "/results.csv", "/report.html", "/plan.yaml", "/runs.jsonl"} {
		changed, name := filepath.Join(p.work, "changed.zip"), oneByte(t, bag, filepath.Join(p.work, "changed.zip"), file)
		if out, code := here("evidence", "verify", changed); code != 1 || !strings.Contains(out, "FINDING "+name+": it was changed") {
			testkind.Failed(t, "one byte of %s: exit code %d:\n%s", name, code, out)
		}
	}
}

// oneByte copies a ZIP and changes one bit of the first file whose name ends so; it returns
// that file's name in the bag.
func oneByte(t *testing.T, from, to, end string) (name string) {
	t.Helper()
	in, err := zip.OpenReader(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for _, f := range in.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if name == "" && strings.HasSuffix(f.Name, end) && len(content) > 0 {
			_, name, _ = strings.Cut(f.Name, "/")
			content[len(content)/2] ^= 1
		}
		w, err := out.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Deflate})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if name == "" {
		t.Fatalf("no file of the bag ends in %s", end)
	}
	return name
}
