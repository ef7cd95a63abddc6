package yamlschema

import (
	"slices"
	"strings"
)

// Mappings lists the mappings of a document that have keys and a section, each once, in the
// order in which a reader meets them.
func (d *Document) Mappings() []*Mapping {
	var out []*Mapping
	var meet func(f Form)
	add := func(m *Mapping) {
		if slices.Contains(out, m) {
			return
		}
		if len(m.Keys) > 0 && !m.Inline {
			out = append(out, m)
		}
		if m.Free != nil {
			meet(*m.Free)
		}
		for _, k := range m.Keys {
			meet(k.Form)
		}
	}
	meet = func(f Form) {
		if f.Mapping != nil {
			add(f.Mapping)
		}
		for _, e := range f.Elements {
			meet(e)
		}
	}
	add(d.Root)
	return out
}

// Head is the head of the table that [Mapping.Rows] are of.
var Head = []string{"key", "value", "without it", "meaning", "example"}

// Rows is a mapping's table for documents. section gives the words for the mapping that a
// value is, by its name, such as a link to its section.
func (m *Mapping) Rows(section func(name string) string) [][]string {
	var out [][]string
	for i := range m.Keys {
		k := &m.Keys[i]
		without := k.unset()
		if k.Required {
			without = "**required**"
		}
		out = append(out, []string{"`" + k.Name + "`", k.Form.words(section), without, k.Meaning, "`" + strings.ReplaceAll(k.Example, "|", `\|`) + "`"})
	}
	return out
}

const templateWidth = 92 // of comments

// Template is a new document: the keys that most have, and the others as comments, each with
// what it means. with gives values for keys of the outermost mapping in place of the examples.
func (d *Document) Template(head string, with map[string]string) string {
	var b strings.Builder
	comment(&b, head)
	for i := range d.Root.Keys {
		k := &d.Root.Keys[i]
		value := k.Example
		if v, given := with[k.Name]; given {
			value = v
		}
		says := k.Form.words(func(name string) string { return "mapping (" + name + ")" })
		switch without := k.unset(); {
		case k.Required:
			says += "; required"
		case without != "":
			says += "; without it: " + without
		}
		b.WriteString("\n")
		comment(&b, k.Meaning)
		comment(&b, "("+says+")")
		mark := "# "
		if k.InTemplate {
			mark = ""
		}
		if !strings.Contains(value, "\n") {
			b.WriteString(mark + k.Name + ": " + value + "\n")
			continue
		}
		b.WriteString(mark + k.Name + ":\n")
		for line := range strings.Lines(value) {
			b.WriteString(mark + "  " + line)
		}
	}
	return b.String()
}

// comment writes a text as lines of a comment.
func comment(b *strings.Builder, text string) {
	text = strings.ReplaceAll(text, "`", "")
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := "#"
		for word := range strings.FieldsSeq(paragraph) {
			if len(line)+1+len(word) > templateWidth {
				b.WriteString(line + "\n")
				line = "#"
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
}
