// Package wordsfile reads and writes the files in which directors keep what they add to reports:
// YAML with the keys of [Language]. Comes in: the text of a file. Goes out: report.Words, or all
// problems with line and column; and the other way.
package wordsfile

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"linktrial/internal/yamldoc"
	"linktrial/internal/yamlschema"
	"linktrial/orchestrator/report"
)

// Language is the keys of such files.
var Language = &yamlschema.Document{
	Name: "words", Title: "Words for a report", Root: keys,
	Meaning: "A file of words says what a director adds to the report of a campaign.",
}

var keys = &yamlschema.Mapping{Name: "the words", Keys: []yamlschema.Key{
	{Name: "version", Form: yamlschema.Integer(0, math.MaxInt32), Unset: "the newest one", Example: "3",
		Meaning: "The version that was edited, 0 where there was none; where there is a newer one, nothing is saved."},
	{Name: "title", Form: yamlschema.Line(), Unset: "the one that Linktrial gives", Example: `"Two protocols on the hill"`, Meaning: fmt.Sprintf("Title of the report, at most %d characters.", report.MaxWordsLine)},
	{Name: "author", Form: yamlschema.Line(), Unset: "who saves the words", Example: `"A. Meyer, Signals School"`, Meaning: fmt.Sprintf("Who wrote the words, at most %d characters.", report.MaxWordsLine)},
	{Name: "summary", Form: yamlschema.Text(), Unset: "there is none", Example: `"Both protocols deliver."`,
		Meaning: fmt.Sprintf("The first chapter: paragraphs with empty lines between them, at most %d characters.", report.MaxWordsSummary)},
	{Name: "remarks", Form: yamlschema.Of(remarkKeys), Unset: "there are none", Example: `{results: "At K Lot a lorry was between the antennas."}`, Meaning: "What ends a chapter, by its key."},
}}

// remarkKeys are the chapters.
var remarkKeys = func() *yamlschema.Mapping {
	m := &yamlschema.Mapping{Name: "remarks"}
	for _, c := range report.Chapters {
		m.Keys = append(m.Keys, yamlschema.Key{Name: c.Key, Form: yamlschema.Text(), Unset: "there is none", Example: `"See the log book."`,
			Meaning: fmt.Sprintf("On the chapter *%s*, at most %d characters.", c.Title, report.MaxWordsRemark)})
	}
	return m
}()

// Read reads a file. Version is the one that was edited; -1: the file does not say. The error
// is [yamldoc.Problems].
func Read(file string, text []byte) (w report.Words, version int, err error) {
	d := yamldoc.Parse(file, text)
	m := keys.Read(d.Root())
	version = -1
	if v, _ := m.Value("version"); v.Given() {
		version = int(v.Required().Int(0, 0, math.MaxInt32))
	}
	w.Title = read(m, "title", report.MaxWordsLine, true)
	w.Author = read(m, "author", report.MaxWordsLine, true)
	w.Summary = read(m, "summary", report.MaxWordsSummary, false)
	w.Remarks = map[string]string{}
	v, _ := m.Value("remarks")
	remarks := remarkKeys.Read(v)
	for _, c := range report.Chapters {
		w.Remarks[c.Key] = read(remarks, c.Key, report.MaxWordsRemark, false)
	}
	w.Tidy()
	return w, version, d.Err()
}

// read reads one of the texts; most is its length in characters.
func read(m yamlschema.Fields, key string, most int, line bool) string {
	v, _ := m.Value(key)
	text := strings.TrimSpace(v.String(""))
	if err := report.CheckWords(text, most, line); err != nil {
		v.Problem("%s", err)
	}
	return text
}

// Write writes words and their version as a file that can be edited and read again. Head is
// comments before it, without their signs.
func Write(w report.Words, version int, head []string) ([]byte, error) {
	text := func(s string) *yaml.Node {
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
		if strings.Contains(s, "\n") || len(s) > 100 {
			n.Style = yaml.LiteralStyle
		}
		return n
	}
	name := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }
	remarks := &yaml.Node{Kind: yaml.MappingNode}
	for _, c := range report.Chapters {
		if s := w.Remarks[c.Key]; s != "" {
			remarks.Content = append(remarks.Content, name(c.Key), text(s))
		}
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		name("version"), name(fmt.Sprint(version)), name("title"), text(w.Title), name("author"), text(w.Author), name("summary"), text(w.Summary), name("remarks"), remarks,
	}}
	var b bytes.Buffer
	for _, line := range head {
		fmt.Fprintf(&b, "# %s\n", yamldoc.Printable(line))
	}
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("words as YAML: %w", err)
	}
	return b.Bytes(), enc.Close()
}
