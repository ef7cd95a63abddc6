package document

import (
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// ownWords are those of the one campaign that a report is of; nil: of several, or it has none.
func ownWords(ds *report.Dataset) *report.Words {
	if len(ds.Words) == 1 && ds.Words[0].Campaign == ds.Campaign {
		return &ds.Words[0]
	}
	return nil
}

// claim puts title and author of the director above what Linktrial calls the report.
func (d *Document) claim(w *report.Words) {
	title := wording.Clean(w.Title)
	d.Author = wording.Clean(w.Author)
	what := "Author"
	switch {
	case title == "" && d.Author == "":
		return
	case title != "":
		d.Title, d.Subtitle = title, d.Title+" · "+d.Subtitle
		what = "Title"
		if d.Author != "" {
			what = "Title and author"
		}
	}
	d.Claim = what + ": w" + strings.TrimPrefix(w.Source(), "W") + " Nothing that was computed follows from texts that are marked in this way."
}

// summaries is the chapter of what directors say of their campaigns: of several, with the
// titles that they gave them.
func summaries(v *report.Analysis) []Section {
	own := ownWords(v.Dataset)
	if own != nil && own.Summary != "" {
		return []Section{{ID: "summary", Title: "Summary by " + own.Writer(), Level: 1, Blocks: quoted(own, "", own.Summary)}}
	}
	var all []Block
	for i := range v.Dataset.Words {
		w := &v.Dataset.Words[i]
		if own == nil && w.Title+w.Author+w.Summary != "" {
			head := strings.TrimSuffix("Campaign "+w.Campaign+": "+w.Title, ": ")
			all = append(all, Block{Words: &Words{Head: wording.Clean(head), Paragraphs: report.Paragraphs(w.Summary), Source: w.Source()}})
		}
	}
	if all == nil {
		return nil
	}
	return []Section{{ID: "summary", Title: "Summaries by the directors", Level: 1, Blocks: all}}
}

// remarked adds to the sections of a chapter what directors remark on it. A chapter for which
// the results have nothing is there for its remarks.
func remarked(v *report.Analysis, c report.Chapter, sections []Section) []Section {
	var all []Block
	title := "Remarks"
	own := ownWords(v.Dataset)
	for i := range v.Dataset.Words {
		w := &v.Dataset.Words[i]
		head := "Campaign " + wording.Clean(w.Campaign)
		if own != nil {
			head, title = "", "Remarks by "+w.Writer()
		}
		all = append(all, quoted(w, head, w.Remarks[c.Key])...)
	}
	if all == nil {
		return sections
	}
	if len(sections) == 0 {
		sections = []Section{{ID: c.Key, Title: c.Title, Level: 1}}
	}
	return append(sections, Section{ID: c.Key + "-remarks", Title: title, Level: 2, Blocks: all})
}

// quoted is a text of a director; none where there is nothing in it.
func quoted(w *report.Words, head, text string) []Block {
	paragraphs := report.Paragraphs(text)
	if paragraphs == nil {
		return nil
	}
	return []Block{{Words: &Words{Head: head, Paragraphs: paragraphs, Source: w.Source()}}}
}
