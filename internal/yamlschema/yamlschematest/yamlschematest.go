// Package yamlschematest holds declarations of keys against the parsers that read them. It is
// for tests.
package yamlschematest

import (
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"linktrial/internal/yamlschema"
)

// Examples is a test of the examples of a document's keys.
type Examples struct {
	Of *yamlschema.Document
	// Basis is a document into which the examples go.
	Basis string
	// Around is what an example needs of the document around its mapping, by mapping and key:
	// "sweep.set". Mappings in it go into those of the document.
	Around map[string]string
	// Above is what it needs in the mapping that holds its own.
	Above map[string]string
	// Read is the parser.
	Read func(text []byte) error
}

// Run puts every key's example into the basis, alone and within the examples of the mappings
// around it, and holds that the parser and the JSON Schema take it. Without a key that is
// required both must refuse it. It returns how many examples it has tried.
func (e *Examples) Run(t *testing.T) int {
	t.Helper()
	run := &run{Examples: e, t: t, schema: Resolved(t, e.Of)}
	run.mapping(e.Of.Root, func() (root, above, inner map[string]any) {
		tree := Parsed[map[string]any](t, e.Basis)
		return tree, tree, tree
	})
	return run.tried
}

type run struct {
	*Examples
	t      *testing.T
	schema *jsonschema.Resolved
	tried  int
}

// mapping tries the keys of a mapping; within gives a new document, the mapping in it and the
// one that holds that.
func (r *run) mapping(m *yamlschema.Mapping, within func() (root, above, inner map[string]any)) {
	r.t.Helper()
	for _, k := range m.Keys {
		what := m.Name + "." + k.Name
		root, above, inner := within()
		r.put(inner, &k)
		deepMerge(above, Parsed[map[string]any](r.t, r.Above[what]))
		deepMerge(root, Parsed[map[string]any](r.t, r.Around[what]))
		r.try(what, root, true)
		if k.Required {
			delete(inner, k.Name)
			r.try(what+" left out", root, false)
		}
		sub := MappingOf(k.Form)
		if sub == nil {
			continue
		}
		r.mapping(sub, func() (root, above, below map[string]any) {
			root, _, inner := within()
			if inner[k.Name] == nil {
				r.put(inner, &k)
			}
			return root, inner, first(inner[k.Name], k.Form)
		})
	}
}

func (r *run) try(what string, tree map[string]any, right bool) {
	r.t.Helper()
	r.tried++
	text, err := yaml.Marshal(tree)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.Read(text); (err == nil) != right {
		r.t.Errorf("%s: the parser: %v\n%s", what, err, text)
	}
	if err := r.schema.Validate(Parsed[any](r.t, string(text))); (err == nil) != right {
		r.t.Errorf("%s: the JSON Schema: %v\n%s", what, err, text)
	}
}

// put gives a mapping the example of a key, and what must stand beside it.
func (r *run) put(into map[string]any, k *yamlschema.Key) {
	r.t.Helper()
	if k.Example == "" || k.Meaning == "" {
		r.t.Errorf("key %s has no example or no meaning", k.Name)
	}
	for _, other := range k.Instead {
		delete(into, other)
	}
	Merge(r.t, into, k.Beside)
	into[k.Name] = Parsed[any](r.t, k.Example)
}

// MappingOf is the mapping with keys that a value of the form is, that it lists or that
// every key of it has; nil: there is none.
func MappingOf(f yamlschema.Form) *yamlschema.Mapping {
	switch m := f.Mapping; {
	case m == nil:
	case len(m.Keys) > 0:
		return m
	case m.Free != nil:
		return MappingOf(*m.Free)
	}
	for _, e := range f.Elements {
		if m := MappingOf(e); m != nil {
			return m
		}
	}
	return nil
}

// first is a mapping, the first of a list of them, or one under any key.
func first(v any, f yamlschema.Form) map[string]any {
	if list, ok := v.([]any); ok {
		return list[0].(map[string]any)
	}
	m := v.(map[string]any)
	if f.Mapping != nil && f.Mapping.Free != nil {
		for _, e := range m {
			return e.(map[string]any)
		}
	}
	return m
}

// Resolved is the JSON Schema of the documents, to validate some.
func Resolved(t *testing.T, of *yamlschema.Document) *jsonschema.Resolved {
	t.Helper()
	r, err := of.JSONSchema().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Parsed reads YAML.
func Parsed[T any](t *testing.T, text string) (out T) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// Merge sets keys of a mapping as the text has them.
func Merge(t *testing.T, into map[string]any, text string) {
	t.Helper()
	for key, value := range Parsed[map[string]any](t, text) {
		into[key] = value
	}
}

func deepMerge(into, from map[string]any) {
	for key, value := range from {
		a, has := into[key].(map[string]any)
		if b, is := value.(map[string]any); has && is {
			deepMerge(a, b)
		} else {
			into[key] = value
		}
	}
}

// Files holds that the JSON Schema takes all of some documents.
func Files(t *testing.T, of *yamlschema.Document, files map[string][]byte) {
	t.Helper()
	schema := Resolved(t, of)
	for file, text := range files {
		if err := schema.Validate(Parsed[any](t, string(text))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Refused holds that the JSON Schema and the parser refuse the basis with each of some keys.
func (e *Examples) Refused(t *testing.T, wrong ...string) {
	t.Helper()
	r := &run{Examples: e, t: t, schema: Resolved(t, e.Of)}
	for _, w := range wrong {
		tree := Parsed[map[string]any](t, e.Basis)
		deepMerge(tree, Parsed[map[string]any](t, "{"+w+"}"))
		r.try(w, tree, false)
	}
}
