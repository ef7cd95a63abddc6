package yamlschema

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// Keywords of [Document.JSONSchema] beyond JSON Schema, for pages and editors.
const (
	KeywordValue = "x-value" // what a value may be, for people
	KeywordUnset = "x-unset" // what holds without the key, for people
	KeywordNames = "x-names" // what a name is of: "radio", "driver", "treatment"
)

// Patterns of quantities, as [yamldoc.Value] reads them.
const (
	number           = `[0-9]*\.?[0-9]+`
	patternDuration  = `^ *(0|(` + number + ` *(ns|us|µs|μs|ms|s|m|h) *)+)$`
	patternSize      = `^ *` + number + ` *(B|KB|KiB|MB|MiB|GB|GiB)? *$`
	patternDistance  = number + ` *(m|km|ft|mi) *$`
	patternRate      = `^ *` + number + ` *(bit/s|kbit/s|Mbit/s|Gbit/s) *$`
	patternQuantity  = `^ *[-+]?` + number + `([eE][-+]?[0-9]+)? *`
	patternName      = `^[a-z0-9][a-z0-9-]{0,47}$`
	patternLine      = `^[^\n\t]*\S[^\n\t]*$`
	maxLineRunes     = 200
	schemaDraft      = "https://json-schema.org/draft/2020-12/schema"
	anyUnit          = `([^ 0-9].{0,15})?`
	largestExactReal = 1 << 53
)

// JSONSchema is the schema of the documents (JSON Schema 2020-12), for editors and other
// programs. It takes every document that the parser takes; the parser refuses more, such as
// names of radios that do not exist.
func (d *Document) JSONSchema() *jsonschema.Schema {
	w := schemaWriter{defs: map[string]*jsonschema.Schema{}, of: map[string]*Mapping{}}
	s := w.mapping(d.Root)
	s.Schema, s.Title, s.Description, s.Defs = schemaDraft, "Linktrial: "+d.Name, d.Meaning, w.defs
	return s
}

// schemaWriter collects the mappings: each has one definition, however often it is used.
type schemaWriter struct {
	defs map[string]*jsonschema.Schema
	of   map[string]*Mapping
}

func (w schemaWriter) ref(m *Mapping) *jsonschema.Schema {
	name := strings.ReplaceAll(m.Name, " ", "-")
	for w.of[name] != nil && w.of[name] != m {
		name += "-2" // of the same name with other keys
	}
	if w.of[name] == nil {
		w.of[name] = m
		w.defs[name] = w.mapping(m)
	}
	return &jsonschema.Schema{Ref: "#/$defs/" + name}
}

func (w schemaWriter) mapping(m *Mapping) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for i := range m.Keys {
		k := &m.Keys[i]
		p := w.form(k.Form)
		p.Description = k.Meaning
		p.Default = k.defaultJSON()
		p.Examples = k.examples()
		if p.Extra == nil {
			p.Extra = map[string]any{}
		}
		p.Extra[KeywordValue] = k.Form.words(func(name string) string { return "mapping: " + name })
		if u := k.unset(); u != "" {
			p.Extra[KeywordUnset] = u
		}
		s.Properties[k.Name] = p
		s.PropertyOrder = append(s.PropertyOrder, k.Name)
		if k.Required {
			s.Required = append(s.Required, k.Name)
		}
	}
	if m.Free != nil {
		s.AdditionalProperties = w.form(*m.Free)
	} else {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	return s
}

// scalars are the types of what YAML has for a text: it may look like a number.
var scalars = []string{"string", "number", "boolean"}

func (w schemaWriter) form(f Form) *jsonschema.Schema {
	switch f.Type {
	case TypeLine:
		return &jsonschema.Schema{Types: scalars, Pattern: patternLine, MaxLength: jsonschema.Ptr(maxLineRunes)}
	case TypeName:
		return &jsonschema.Schema{Types: scalars, Pattern: patternName}
	case TypeKnown:
		return &jsonschema.Schema{Types: scalars, Extra: map[string]any{KeywordNames: f.What}}
	case TypeInteger:
		return bounded(&jsonschema.Schema{Type: "integer"}, f)
	case TypeNumber:
		return bounded(&jsonschema.Schema{Type: "number"}, f)
	case TypeQuantity:
		unit := f.Unit + "?"
		if f.Unit == "" {
			unit = anyUnit
		} else if len(f.Unit) > 1 {
			unit = "(" + f.Unit + ")?"
		}
		return bounded(&jsonschema.Schema{Types: []string{"string", "number"}, Pattern: patternQuantity + unit + ` *$`}, f)
	case TypeFlag:
		return &jsonschema.Schema{Type: "boolean"}
	case TypeDuration:
		return &jsonschema.Schema{Types: []string{"string", "integer"}, Pattern: patternDuration}
	case TypeSize:
		return bounded(&jsonschema.Schema{Types: []string{"string", "integer"}, Pattern: patternSize}, f)
	case TypeDistance:
		if f.Lo < 0 {
			return &jsonschema.Schema{Type: "string", Pattern: `^ *-?` + patternDistance}
		}
		return &jsonschema.Schema{Type: "string", Pattern: `^ *` + patternDistance}
	case TypeRate:
		return &jsonschema.Schema{Type: "string", Pattern: patternRate}
	case TypePattern:
		return &jsonschema.Schema{Types: scalars, Pattern: f.Pattern}
	case TypeWord:
		s := &jsonschema.Schema{Type: "string"}
		for _, word := range f.Words {
			s.Enum = append(s.Enum, word)
		}
		return s
	case TypeMapping:
		return w.ref(f.Mapping)
	case TypeList:
		s := &jsonschema.Schema{Type: "array", Items: w.form(f.Elements[0])}
		if f.Lo > 0 {
			s.MinItems = jsonschema.Ptr(int(f.Lo))
		}
		if f.Hi > 0 {
			s.MaxItems = jsonschema.Ptr(int(f.Hi))
		}
		return s
	case TypeEither:
		s := &jsonschema.Schema{}
		for _, e := range f.Elements {
			s.AnyOf = append(s.AnyOf, w.form(e))
		}
		return s
	case TypeAny:
		return &jsonschema.Schema{}
	}
	return &jsonschema.Schema{Types: scalars} // TypeText
}

// bounded adds the bounds that a number is written with; a bound beyond exact numbers is none.
func bounded(s *jsonschema.Schema, f Form) *jsonschema.Schema {
	if math.Abs(f.Lo) <= largestExactReal {
		s.Minimum = jsonschema.Ptr(f.Lo)
	}
	if math.Abs(f.Hi) <= largestExactReal {
		s.Maximum = jsonschema.Ptr(f.Hi)
	}
	return s
}

// defaultJSON is what holds without the key as a JSON value; nil: that is no value.
func (k *Key) defaultJSON() json.RawMessage {
	switch d := k.Default.(type) {
	case nil:
		return nil
	case time.Duration:
		return json.RawMessage(strconv.Quote(shortDuration(d)))
	default:
		b, err := json.Marshal(d)
		if err != nil {
			panic(err) // a declaration's own value
		}
		return b
	}
}

func (k *Key) examples() []any {
	if k.Example == "" {
		return nil
	}
	var v any
	if err := yaml.Unmarshal([]byte(k.Example), &v); err != nil {
		return nil // a test holds every example against the parser
	}
	return []any{v}
}
