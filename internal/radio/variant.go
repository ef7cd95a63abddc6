package radio

import (
	"fmt"
	"slices"
	"strings"

	"linktrial/internal/yamlschema"
)

// variants are the forms that a mapping takes by the word of one of its keys, such as
// the models of a channel.
type variants []variant

type variant struct {
	meaning string
	keys    *yamlschema.Mapping // its name is the word
}

func (vs variants) words() []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = v.keys.Name
	}
	return out
}

// of is the keys of a variant, which must be one.
func (vs variants) of(word string) *yamlschema.Mapping {
	return vs[slices.Index(vs.words(), word)].keys
}

// names is the keys of all variants, each once.
func (vs variants) names() []string {
	var out []string
	for _, v := range vs {
		for _, k := range v.keys.Keys {
			if !slices.Contains(out, k.Name) {
				out = append(out, k.Name)
			}
		}
	}
	return out
}

// others is the keys of all variants that one has not.
func (vs variants) others(than *yamlschema.Mapping) []string {
	return slices.DeleteFunc(vs.names(), func(name string) bool { return than.Key(name) != nil })
}

// keyed is the keys of all variants in one list, after the one whose word chooses.
func (vs variants) keyed(choice yamlschema.Key) []yamlschema.Key {
	choice.Form, choice.Required, choice.Instead, choice.Example = yamlschema.Word(vs.words()...), true, vs.names(), vs[0].keys.Name
	for _, k := range vs[0].keys.Keys {
		if k.Required {
			choice.Beside += ", " + k.Name + ": " + k.Example
		}
	}
	choice.Beside = "{" + strings.TrimPrefix(choice.Beside, ", ") + "}"
	out := []yamlschema.Key{choice}
	for _, name := range vs.names() {
		out = append(out, vs.merged(choice.Name, name))
	}
	return out
}

// merged is a key as all variants that have it say together; the example is the first one's.
func (vs variants) merged(choice, name string) yamlschema.Key {
	var out yamlschema.Key
	var needed, meanings []string
	for _, v := range vs {
		k := v.keys.Key(name)
		if k == nil {
			continue
		}
		if k.Required {
			needed = append(needed, v.keys.Name)
		}
		meanings = append(meanings, "`"+v.keys.Name+"`: "+k.Meaning)
		if out.Name == "" {
			out = *k
			out.Beside = vs.beside(choice, v.keys, k)
			out.Instead = slices.Concat(k.Instead, vs.others(v.keys))
		}
	}
	out.Meaning = strings.Join(meanings, " ")
	if len(needed) > 0 {
		out.Unset = "an error with " + strings.Join(needed, " and ")
	} else if out.Default != nil {
		out.Unset = fmt.Sprint(out.Default)
	}
	out.Required, out.Default = false, nil
	return out
}

// beside is what must stand with a variant's key: the word, and what the variant requires.
func (variants) beside(choice string, of *yamlschema.Mapping, k *yamlschema.Key) string {
	own := strings.TrimSuffix(strings.TrimPrefix(k.Beside, "{"), "}")
	parts := []string{choice + ": " + of.Name}
	for _, r := range of.Keys {
		if r.Required && r.Name != k.Name && !strings.Contains(own, r.Name+":") {
			parts = append(parts, r.Name+": "+r.Example)
		}
	}
	if own != "" {
		parts = append(parts, own)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// rows is a table of all variants' keys: those of [yamlschema.Mapping.Rows] after the word.
func (vs variants) rows(section func(name string) string) [][]string {
	var out [][]string
	for _, v := range vs {
		for _, row := range v.keys.Rows(section) {
			out = append(out, append([]string{"`" + v.keys.Name + "`"}, row...))
		}
	}
	return out
}
