// Package yamlschema declares the keys of YAML documents that people write: plans, radio
// profiles, topologies. One declaration gives a parser its keys, defaults, bounds and messages
// ([Mapping.Read]), and editors, pages, templates and documents what they say of a key
// ([Document.JSONSchema], [Document.Template], [Mapping.Rows]).
//
// A key that a parser reads in its own way has its form here for people all the same; what
// the form does not say, such as that two keys exclude each other, the parser checks.
package yamlschema

import (
	"fmt"
	"slices"
	"time"

	"linktrial/internal/yamldoc"
)

// Document is one kind of document.
type Document struct {
	Name  string // in commands and addresses: "plan"
	Title string
	// Meaning says in a sentence what such a document is for.
	Meaning string
	Root    *Mapping
}

// Mapping is a mapping of a document.
type Mapping struct {
	// Name is what documents call it. Mappings of one name are one to readers, such as the
	// flows of a trial and those of a mix, which name their treatment too.
	Name string
	Keys []Key
	// Free is what every other key holds, such as the size of each topology; nil: there is none.
	Free *Form
	// Inline: documents name the keys where the mapping is a value, and have no section of it.
	Inline bool
}

// Key is one key of a mapping.
type Key struct {
	Name     string
	Form     Form
	Required bool
	// Default is what holds without the key: a time.Duration, int, float64, bool or string as
	// Form has it. Nil: nothing holds, or what Unset says.
	Default any
	// Unset says for people what holds without the key, where that is no value.
	Unset string
	// Meaning is one sentence or two, with the unit.
	Meaning string
	// Example is a value, as in YAML.
	Example string
	// Beside is keys that must stand with the example, as a flow mapping in YAML.
	Beside string
	// Instead names the keys in whose place it stands: a document has one of them.
	Instead []string
	// InTemplate: the key is in a new document; others are there as comments.
	InTemplate bool
}

// names lists the keys; none where every key is taken.
func (m *Mapping) names() []string {
	if m.Free != nil {
		return nil
	}
	out := make([]string, len(m.Keys))
	for i, k := range m.Keys {
		out[i] = k.Name
	}
	return out
}

// Key is a key by its name; nil where there is none.
func (m *Mapping) Key(name string) *Key {
	i := slices.IndexFunc(m.Keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return &m.Keys[i]
}

// With is a mapping of the same name with more keys.
func (m *Mapping) With(keys ...Key) *Mapping {
	return &Mapping{Name: m.Name, Keys: slices.Concat(m.Keys, keys), Free: m.Free}
}

// Some is a mapping with some of the keys, in the order of names.
func (m *Mapping) Some(name string, names ...string) *Mapping {
	out := &Mapping{Name: name}
	for _, n := range names {
		out.Keys = append(out.Keys, *m.Key(n))
	}
	return out
}

// Read reads the mapping; an unknown key is a problem.
func (m *Mapping) Read(v yamldoc.Value) Fields { return m.Fields(v.Mapping(m.names()...)) }

// Fields reads fields as declared here where the mapping was read as another declaration says,
// such as a group's iterations, which have the bounds of the plan's.
func (m *Mapping) Fields(read yamldoc.Mapping) Fields { return Fields{read, m} }

// Fields is the fields of a mapping, with readers that take defaults and bounds from its
// declaration. A reader panics where the key is not declared, or in another form.
type Fields struct {
	yamldoc.Mapping
	of *Mapping
}

func (f Fields) key(name string, t Type) *Key {
	k := f.of.Key(name)
	if k == nil || k.Form.Type != t {
		panic(fmt.Sprintf("yamlschema: %s has no key %q of type %s", f.of.Name, name, t))
	}
	return k
}

func orZero[T any](v any) T {
	out, _ := v.(T)
	return out
}

// Duration reads a duration within its bounds.
func (f Fields) Duration(name string) time.Duration {
	k := f.key(name, TypeDuration)
	return k.Form.Duration(f.field(k), orZero[time.Duration](k.Default))
}

// DurationOr is [Fields.Duration] of a key without a default: what one that is wrong or
// absent is taken for.
func (f Fields) DurationOr(name string, otherwise time.Duration) time.Duration {
	k := f.key(name, TypeDuration)
	return k.Form.Duration(f.field(k), otherwise)
}

// Int reads a whole number within its bounds.
func (f Fields) Int(name string) int {
	k := f.key(name, TypeInteger)
	def := orZero[int](k.Default)
	if k.Required {
		def = int(k.Form.Lo)
	}
	return int(f.field(k).Int(int64(def), int64(k.Form.Lo), int64(k.Form.Hi)))
}

// Number reads a number within its bounds.
func (f Fields) Number(name string) float64 {
	k := f.key(name, TypeNumber)
	def := orZero[float64](k.Default)
	if k.Required {
		def = k.Form.Lo
	}
	return f.field(k).Float(def, k.Form.Lo, k.Form.Hi)
}

// Bool reads true or false.
func (f Fields) Bool(name string) bool {
	k := f.key(name, TypeFlag)
	return f.field(k).Bool(orZero[bool](k.Default))
}

// Word reads one of the words.
func (f Fields) Word(name string) string {
	k := f.key(name, TypeWord)
	return f.field(k).OneOf(orZero[string](k.Default), k.Form.Words...)
}

// Value is a value that is read in a way of its own, and its key; that a required one is
// absent is noted.
func (f Fields) Value(name string) (yamldoc.Value, *Key) {
	k := f.of.Key(name)
	if k == nil {
		panic(fmt.Sprintf("yamlschema: %s has no key %q", f.of.Name, name))
	}
	return f.field(k), k
}

func (f Fields) field(k *Key) yamldoc.Value {
	if v := f.Field(k.Name); k.Required {
		return v.Required()
	} else {
		return v
	}
}

// Duration reads a duration within the form's bounds; absent or wrong is the default.
func (f Form) Duration(v yamldoc.Value, def time.Duration) time.Duration {
	if !v.Present() {
		return def
	}
	lo, hi := time.Duration(f.Lo), time.Duration(f.Hi)
	d := v.Duration(lo)
	if d < lo || d > hi {
		v.Problem("expected %s to %s, found %s", lo, hi, d)
	}
	if !v.OK() {
		return def
	}
	return d
}
