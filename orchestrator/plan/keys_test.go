package plan_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"linktrial/internal/docpart"
	"linktrial/internal/yamlschema"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/plan"
)

// basis is a plan into which the examples of keys go.
const basis = `name: basis
radio: prc-117g-anw2c
topology: vip-lot
size: [64 KiB, 256 KiB]
treatments:
  - {name: cubic, protocol: tcp, options: {congestion: cubic}}
  - {name: reno, protocol: tcp, options: {congestion: reno}}
  - {name: voice, protocol: probe, options: {pattern: voip-g711}}
probes: [{treatment: voice, alone: 60s}]
iterations: 2
seed: 1
`

// around is what an example needs of the plan around its mapping.
var around = map[string]string{
	"published rows.group":    "{groups: [{name: first, size: 64 KiB}, {name: second, radio: mpu4}]}",
	"published values.group":  "{groups: [{name: first, size: 64 KiB}, {name: second, radio: mpu4}]}",
	"treatments.second_radio": "{topology: two-radios}",
}

// TestExamplesOfKeys holds that the example of every key is right: a plan that has it is read.
func TestExamplesOfKeys(t *testing.T) {
	cat, _ := kindPlans(t)
	schema := resolved(t)
	tried := 0
	try := func(what string, tree map[string]any) {
		tried++
		merge(t, tree, around[what])
		text, err := yaml.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Parse(nil, "p.yaml", text, cat); err != nil {
			t.Errorf("%s: %v\n%s", what, err, text)
		}
		var instance any
		if err := yaml.Unmarshal(text, &instance); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance); err != nil {
			t.Errorf("%s: the JSON Schema refuses the example: %v\n%s", what, err, text)
		}
	}
	var examples func(m *yamlschema.Mapping, within func() (root, here map[string]any))
	examples = func(m *yamlschema.Mapping, within func() (root, here map[string]any)) {
		for _, k := range m.Keys {
			root, here := within()
			put(t, here, &k)
			try(m.Name+"."+k.Name, root)
			if sub := mappingOf(k.Form); sub != nil {
				examples(sub, func() (root, inner map[string]any) {
					root, here := within()
					if here[k.Name] == nil {
						put(t, here, &k)
					}
					return root, first(here[k.Name])
				})
			}
		}
	}
	examples(plan.Language.Root, func() (root, here map[string]any) {
		tree := parsed[map[string]any](t, basis)
		return tree, tree
	})
	if tried < 150 {
		t.Errorf("%d examples were tried", tried)
	}
}

func parsed[T any](t *testing.T, text string) (out T) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

func merge(t *testing.T, into map[string]any, text string) {
	t.Helper()
	for key, value := range parsed[map[string]any](t, text) {
		into[key] = value
	}
}

// put gives a mapping the example of a key, and what must stand beside it.
func put(t *testing.T, into map[string]any, k *yamlschema.Key) {
	t.Helper()
	if k.Example == "" || k.Meaning == "" {
		t.Errorf("key %s has no example or no meaning", k.Name)
	}
	for _, other := range k.Instead {
		delete(into, other)
	}
	merge(t, into, k.Beside)
	into[k.Name] = parsed[any](t, k.Example)
}

// first is a mapping, or the first of a list of them.
func first(v any) map[string]any {
	if list, ok := v.([]any); ok {
		v = list[0]
	}
	return v.(map[string]any)
}

func resolved(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	r, err := plan.Language.JSONSchema().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSchemaTakesEveryPlan holds the JSON Schema against plans that the parser takes, and
// against what it refuses in every mapping.
func TestSchemaTakesEveryPlan(t *testing.T) {
	schema := resolved(t)
	files, err := filepath.Glob("../../plans/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := filepath.Glob("../../e2e/kinds/plans/*.yaml")
	if err != nil || len(files) == 0 || len(kinds) == 0 {
		t.Fatalf("plans: %v %v (%v)", files, kinds, err)
	}
	for _, file := range slices.Concat(files, kinds) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tree := parsed[any](t, string(text))
		if err := schema.Validate(tree); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, wrong := range []string{
		"there_is_no_such_key: 1", "limits: {conect: 10s}", "limits: {connect: ten}", "order: latin", "iterations: 0", "capture: maybe",
		"seed: -1", "size: 3 parsecs", "treatments: []", "valid: {position: 25 kg}", "valid: {battery: {}}", "flows: [{count: 0}]", "title: \"two\\nlines\"",
		"name: Capitals", "published: {rows: []}", "sample_interval: [1s]",
	} {
		tree := parsed[map[string]any](t, basis)
		merge(t, tree, "{"+wrong+"}")
		if err := schema.Validate(tree); err == nil {
			t.Errorf("the schema takes %s", wrong)
		}
		text, err := yaml.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Parse(nil, "p.yaml", text, testCatalog(t)); err == nil {
			t.Errorf("the parser takes %s", wrong)
		}
	}
	if _, err := json.Marshal(plan.Language.JSONSchema()); err != nil {
		t.Error(err)
	}
}

// TestTemplateIsAPlan holds that a new plan is right as it is, and with each of its comments
// made a key.
func TestTemplateIsAPlan(t *testing.T) {
	text := plan.Template("mine", plan.TemplateValues{})
	cat, err := catalog.Load(catalog.Config{DriversDir: strings.Join([]string{"../../protocols", "../../protocols/haul/cmd"}, string(os.PathListSeparator))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Parse(nil, "mine.yaml", []byte(text), cat); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	for _, k := range plan.Language.Root.Keys {
		if !strings.Contains(text, "\n"+k.Name+":") && !strings.Contains(text, "\n# "+k.Name+": ") {
			t.Errorf("the template has no %s", k.Name)
		}
	}
}

// TestPageHasEveryKey holds the tables of docs/plans.md.
func TestPageHasEveryKey(t *testing.T) {
	section := func(name string) string {
		return fmt.Sprintf("[%s](#%s)", name, strings.ReplaceAll(name, " ", "-"))
	}
	for _, m := range plan.Language.Mappings() {
		if m.Name == "flows" && m.Key("treatment") == nil || m.Name == "probes" && m.Key("alone") == nil {
			continue // the same with fewer keys
		}
		docpart.Hold(t, "docs/plans.md", "keys of "+m.Name, docpart.Table(yamlschema.Head, m.Rows(section)))
	}
}
