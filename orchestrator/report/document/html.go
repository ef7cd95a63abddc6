package document

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"iter"
	"slices"
)

//go:embed report.html.tmpl
var pageText string

var pageTemplate = template.Must(template.New("report").Parse(pageText))

// HTML writes a document as one file that needs no network and can be printed. Its error is
// one sentence, what is wrong with the document, and then nothing was written; or that of w.
func HTML(w io.Writer, d *Document) error {
	p, err := pageOf(d)
	if err != nil {
		return fmt.Errorf("the report as HTML: %w", err)
	}
	return pageTemplate.Execute(w, p)
}

// htmlPage is what the template has of a document.
type htmlPage struct {
	*Document
	Style template.CSS
	// Policy is the page's Content-Security-Policy: it loads nothing, and of styles it has its own alone.
	Policy string
	Parts  []*htmlSection
	// SignOff are the roles of those who sign by hand.
	SignOff []string
}

type htmlSection struct {
	*Section
	// Lead is the first block where it is printed on a landscape page, with the section's heading.
	Lead *htmlBlock
	Rest []*htmlBlock
	// Landscape: nothing but the heading, before a section with a Lead.
	Landscape bool
}

type htmlBlock struct {
	*Block
	Table     *htmlTable
	Drawing   *drawing // of the block's figure
	Landscape bool     // on paper
}

func pageOf(d *Document) (*htmlPage, error) {
	if err := check(d); err != nil {
		return nil, err
	}
	p := &htmlPage{Document: d, SignOff: []string{"Prepared", "Reviewed", "Approved"}}
	for i := range d.Sections {
		s, err := sectionOf(&d.Sections[i])
		if err != nil {
			return nil, err
		}
		if last := len(p.Parts) - 1; s.Lead != nil && s.Level == 2 && len(p.Parts[last].Blocks) == 0 {
			p.Parts[last].Landscape = true
		}
		p.Parts = append(p.Parts, s)
	}
	style := styleOf(p)
	p.Style, p.Policy = template.CSS(style), policyFor(style) // styleOf escapes the document's texts
	return p, nil
}

func sectionOf(of *Section) (*htmlSection, error) {
	s := &htmlSection{Section: of}
	for i := range of.Blocks {
		b := &htmlBlock{Block: &of.Blocks[i]}
		if t := b.Block.Table; t != nil {
			b.Table = tableOf(t)
			b.Landscape = b.Table.landscape()
		}
		if f := b.Figure; f != nil {
			var err error
			if b.Drawing, err = inlined(f.SVG); err != nil {
				return nil, fmt.Errorf("figure %d: %w", f.Number, err)
			}
			b.Landscape = b.Drawing.landscape()
		}
		if i == 0 && b.Landscape {
			s.Lead = b
		} else {
			s.Rest = append(s.Rest, b)
		}
	}
	return s, nil
}

// hasWords reports whether a director wrote something of it.
func (p *htmlPage) hasWords() bool {
	return p.Claim != "" || slices.ContainsFunc(p.Sections, func(s Section) bool {
		return slices.ContainsFunc(s.Blocks, func(b Block) bool { return b.Words != nil })
	})
}

// tables are those of all sections.
func (p *htmlPage) tables() iter.Seq[*htmlTable] {
	return func(yield func(*htmlTable) bool) {
		for _, s := range p.Parts {
			if s.Lead != nil && s.Lead.Table != nil && !yield(s.Lead.Table) {
				return
			}
			for _, b := range s.Rest {
				if b.Table != nil && !yield(b.Table) {
					return
				}
			}
		}
	}
}
