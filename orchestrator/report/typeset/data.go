package typeset

import (
	"cmp"
	"encoding/json"

	"linktrial/orchestrator/report/document"
	"linktrial/orchestrator/report/wording"
)

// page is the document as the template reads it. A field of the type any is a text as
// [setter.text] has it.
type page struct {
	Name     string    `json:"name"` // the title as one string
	Title    any       `json:"title"`
	Subtitle any       `json:"subtitle"`
	Author   any       `json:"author"`
	Claim    any       `json:"claim"`
	Running  any       `json:"running"` // of every page's head, and so clipped
	Partial  any       `json:"partial"`
	Warning  any       `json:"warning"` // Partial, for every page's head
	Spelled  bool      `json:"spelled"`
	Plainly  bool      `json:"plainly"` // a table is set as lines
	Sections []section `json:"sections"`
}

type section struct {
	Level  int    `json:"level"`
	Number string `json:"number"`
	Title  any    `json:"title"`
	Blocks []any  `json:"blocks"`
}

type paragraph struct {
	Kind string `json:"kind"`
	Text any    `json:"text"`
}

type words struct {
	Kind       string `json:"kind"`
	Head       any    `json:"head"`
	Paragraphs []any  `json:"paragraphs"`
	Source     any    `json:"source"`
}

type list struct {
	Kind  string `json:"kind"`
	Items []any  `json:"items"`
}

type facts struct {
	Kind  string `json:"kind"`
	Facts []fact `json:"facts"`
}

type fact struct {
	Name  any  `json:"name"`
	Value any  `json:"value"`
	Mono  bool `json:"mono"`
}

// mostInHead is how many characters a text in the head of a page or of a table has.
const mostInHead = 180

// dataOf returns the files of a document, by name: the data for the template, and drawings.
func dataOf(d *document.Document) (map[string][]byte, error) {
	s := &setter{plainly: plainTables(d)}
	title := cmp.Or(d.Title, "A report") // a PDF/UA has one
	p := page{Name: s.plain(title), Title: s.text(title), Subtitle: s.text(d.Subtitle), Author: s.text(d.Author), Claim: s.text(d.Claim), Running: s.text(wording.ClipMiddle(d.Running, mostInHead)), Partial: s.text(d.Partial),
		Warning: s.text(wording.Clip(d.Partial, mostInHead)), Sections: []section{}}
	files := map[string][]byte{}
	for _, of := range d.Sections {
		one := section{Level: of.Level, Number: of.Number, Title: s.text(of.Title), Blocks: []any{}}
		for _, b := range of.Blocks {
			switch {
			case b.Table != nil:
				one.Blocks = append(one.Blocks, s.table(b.Table))
			case b.Figure != nil:
				f := s.figure(b.Figure, len(files))
				files[f.File] = []byte(s.inFonts(string(b.Figure.SVG)))
				one.Blocks = append(one.Blocks, f)
			case len(b.Facts) > 0:
				one.Blocks = append(one.Blocks, s.facts(b.Facts))
			case len(b.List) > 0:
				one.Blocks = append(one.Blocks, list{"list", s.texts(b.List)})
			case b.Words != nil:
				one.Blocks = append(one.Blocks, words{"words", s.text(b.Words.Head), s.texts(b.Words.Paragraphs), s.text(b.Words.Source)})
			case b.Paragraph != "":
				one.Blocks = append(one.Blocks, paragraph{"paragraph", s.text(b.Paragraph)})
			}
		}
		p.Sections = append(p.Sections, one)
	}
	p.Spelled, p.Plainly = s.spelled, len(s.plainly) > 0
	content, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	files["document.json"] = content
	return files, nil
}

func (s *setter) facts(of []document.Fact) facts {
	out := facts{Kind: "facts"}
	for _, f := range of {
		out.Facts = append(out.Facts, fact{s.text(f.Name), s.text(f.Value), f.Mono})
	}
	return out
}
