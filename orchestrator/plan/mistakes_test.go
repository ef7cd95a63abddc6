package plan_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
	"linktrial/protocols/contract"
)

// document is a file that people write, and what reads it.
type document struct {
	file string
	text []byte
	read func(text []byte) error
}

// documents is every plan, profile, topology, trace and manifest that comes with
// Linktrial, or that its tests have.
func documents(t testing.TB) []document {
	t.Helper()
	cat := testCatalog(t)
	kinds := []struct {
		glob string
		read func(file string, text []byte) error
	}{
		{"../../plans/*.yaml", func(file string, text []byte) error { return readPlan(cat, file, text) }},
		{"testdata/*.yaml", func(file string, text []byte) error { return readPlan(cat, file, text) }},
		{"../../radio-profiles/*.yaml", readProfile},
		{"../../internal/radio/testdata/*.yaml", readProfile},
		{"../../topologies/*.yaml", func(file string, text []byte) error { _, err := radio.ParseTopology(file, text); return err }},
		{"../../protocols/*/driver.yaml", func(file string, text []byte) error { _, err := contract.ParseManifest(file, text); return err }},
	}
	var out []document
	for _, k := range kinds {
		files, err := filepath.Glob(k.glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(f)
			if name == "driver.yaml" {
				name = filepath.Base(filepath.Dir(f)) + ".yaml"
			}
			out = append(out, document{name, text, func(text []byte) error { return k.read(name, text) }})
		}
	}
	return out
}

func readPlan(cat *catalog.Catalog, file string, text []byte) error {
	p, err := plan.Parse(nil, file, text, cat)
	if err != nil {
		return err
	}
	sheets, err := sheet.Compile(nil, p)
	for _, s := range sheets {
		sheet.Estimate(s)
		if _, err := s.Encode(); err != nil {
			return err
		}
	}
	return err
}

func readProfile(file string, text []byte) error {
	_, err := radio.ReadProfile(file, text, func(string) ([]byte, error) { return []byte("time_s,loss\n0,0\n1,0.5\n"), nil })
	return err
}

func problemsOf(t testing.TB, err error) yamldoc.Problems {
	t.Helper()
	var ps yamldoc.Problems
	if err != nil && !errors.As(err, &ps) {
		t.Errorf("the error is none with places: %v", err)
	}
	return ps
}

// renames is what stands before a text that other places of a document refer to.
var renames = regexp.MustCompile(`(name|label|set|title): *$|(values|set): \[[^\]]*$`)

// One value that is wrong gives one message, and at its line: what else would
// follow from it is not said.
func TestOneMistakeOneMessage(t *testing.T) {
	for _, d := range documents(t) {
		var doc yaml.Node
		if err := yaml.Unmarshal(d.text, &doc); err != nil {
			t.Fatal(err)
		}
		var values []*yaml.Node
		var collect func(n *yaml.Node)
		collect = func(n *yaml.Node) {
			for i, c := range n.Content {
				if n.Kind == yaml.MappingNode && i%2 == 0 {
					continue // a key
				}
				collect(c)
			}
			if n.Kind == yaml.ScalarNode {
				values = append(values, n)
			}
		}
		collect(doc.Content[0])
		every := 1 + len(d.text)/800 // of the largest plans not every value: reading them takes time
		for k, bad := range []string{"'?!'", "[[]]", "-1", "1e300 MHz", "999999h"} {
			lines := strings.Split(string(d.text), "\n")
			for i, n := range values {
				if (i+k)%every != 0 {
					continue
				}
				line := lines[n.Line-1]
				runes := []rune(line)
				from := string(runes[:n.Column-1])
				rest := string(runes[n.Column-1:])
				if !strings.HasPrefix(rest, n.Value) {
					continue // quoted, folded or anchored
				}
				if strings.Contains(from, "labels:") || bad == "-1" && strings.HasSuffix(from, "itude: ") || k > 0 && renames.MatchString(from) {
					continue // a good name, which what refers to the old one does not know
				}
				text := strings.Join(lines[:n.Line-1], "\n") + "\n" + from + bad + rest[len(n.Value):] + "\n" + strings.Join(lines[n.Line:], "\n")
				ps := problemsOf(t, d.read([]byte(text)))
				if len(ps) > 1 {
					t.Errorf("%s: %s%s instead of %s gives %d problems:\n%v", d.file, strings.TrimSpace(from), bad, n.Value, len(ps), ps)
				}
			}
		}
	}
}
