package plan_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linktrial/internal/docpart"
	"linktrial/internal/yamlschema"
	"linktrial/internal/yamlschema/yamlschematest"
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
probes: [{treatment: voice, alone: 60s, beside: false}]
iterations: 100
seed: 1
`

// around is what an example needs of the plan around its mapping.
var around = map[string]string{
	"published rows.group":    "{groups: [{name: first, size: 64 KiB}, {name: second, radio: mpu4}]}",
	"requirements.group":      "{groups: [{name: first, size: 64 KiB}, {name: second, radio: mpu4}]}",
	"published values.group":  "{groups: [{name: first, size: 64 KiB}, {name: second, radio: mpu4}]}",
	"a rule to stop by.first": "{iterations: 30}", "a rule to stop by.every": "{iterations: 30}", "a rule to stop by.spending": "{iterations: 30}", "a rule to stop by.alpha": "{iterations: 30}",
	"treatments.second_radio": "{topology: two-radios}",
}

func examples(t *testing.T) *yamlschematest.Examples {
	t.Helper()
	cat, _ := kindPlans(t)
	return &yamlschematest.Examples{Of: plan.Language, Basis: basis, Around: around, Read: func(text []byte) error {
		_, err := plan.Parse(nil, "p.yaml", text, cat)
		return err
	}}
}

// TestExamplesOfKeys holds that the example of every key is right: a plan that has it is read.
func TestExamplesOfKeys(t *testing.T) {
	if tried := examples(t).Run(t); tried < 150 {
		t.Errorf("%d examples were tried", tried)
	}
}

// TestSchemaTakesEveryPlan holds the JSON Schema against plans that the parser takes, and
// against what it refuses in every mapping.
func TestSchemaTakesEveryPlan(t *testing.T) {
	files, err := filepath.Glob("../../plans/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := filepath.Glob("../../e2e/kinds/plans/*.yaml")
	if err != nil || len(files) == 0 || len(kinds) == 0 {
		t.Fatalf("plans: %v %v (%v)", files, kinds, err)
	}
	texts := map[string][]byte{}
	for _, file := range slices.Concat(files, kinds) {
		if texts[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	yamlschematest.Files(t, plan.Language, texts)
	examples(t).Refused(t,
		"there_is_no_such_key: 1", "limits: {conect: 10s}", "limits: {connect: ten}", "order: latin", "iterations: 0", "capture: maybe",
		"seed: -1", "size: 3 parsecs", "treatments: []", "valid: {position: 25 kg}", "valid: {battery: {}}", "stop: {}", "stop: {first: 10, every: 0}", "stop: {first: 10, every: 5, spending: all}", "flows: [{count: 0}]", "title: \"two\\nlines\"",
		"name: Capitals", "published: {rows: []}", "sample_interval: [1s]",
	)
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
