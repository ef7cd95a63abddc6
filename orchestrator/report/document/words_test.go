package document

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// worded is a campaign with words, which text is part of.
func worded(campaign, text string) *report.Dataset {
	ds := reporttest.Compared()
	ds.Campaign = campaign
	ds.Words = []report.Words{{Campaign: campaign, Title: "Title " + text, Author: "Author " + text, Summary: "Summary " + text + "\n\nSecond.", Remarks: map[string]string{"method": "On the method " + text, "published": "Nobody has published it " + text},
		By: "ada", At: time.Date(2026, 5, 1, 8, 30, 0, 0, time.UTC)}}
	return ds
}

func documentOf(t *testing.T, ds *report.Dataset) *Document {
	t.Helper()
	d, err := Of(report.Analyse(ds, report.Options{}))
	require.NoError(t, err)
	return d
}

// section is one by its id; nil: there is none.
func (d *Document) section(id string) *Section {
	for i := range d.Sections {
		if d.Sections[i].ID == id {
			return &d.Sections[i]
		}
	}
	return nil
}

// The chapters that can have remarks are those that are made, in their order and with their titles.
func TestChaptersAreListed(t *testing.T) {
	require.Len(t, chapters, len(report.Chapters))
	made := map[string]bool{}
	for name, ds := range reporttest.Datasets() {
		for i, chapter := range chapters {
			sections, err := chapter(report.Analyse(ds, report.Options{}))
			require.NoError(t, err)
			if len(sections) > 0 {
				require.Equal(t, report.Chapters[i], report.Chapter{Key: sections[0].ID, Title: sections[0].Title}, name)
				made[sections[0].ID] = true
			}
		}
	}
	require.Len(t, made, len(chapters), "a chapter that no dataset has")
}

func TestWords(t *testing.T) {
	d := documentOf(t, worded("c", "x"))
	require.Equal(t, "Title x", d.Title)
	require.Equal(t, "Author x", d.Author)
	require.Contains(t, d.Subtitle, "Field trial ")
	require.Contains(t, d.Subtitle, " · Campaign c")
	require.True(t, strings.HasPrefix(d.Claim, "Title and author: words of Author x, not computed; written by ada 2026-05-01 08:30:00 UTC."), d.Claim)
	const source = "Words of Author x, not computed; written by ada 2026-05-01 08:30:00 UTC."
	require.Equal(t, Section{ID: "summary", Title: "Summary by Author x", Level: 1, Number: "1", Blocks: []Block{{Words: &Words{Paragraphs: []string{"Summary x", "Second."}, Source: source}}}}, d.Sections[0])
	require.Equal(t, "conclusion", d.Sections[1].ID)
	remarks := d.section("method-remarks")
	require.Equal(t, "Remarks by Author x", remarks.Title)
	require.Equal(t, []Block{{Words: &Words{Paragraphs: []string{"On the method x"}, Source: source}}}, remarks.Blocks)
	for i := range d.Sections {
		if d.Sections[i].ID == "method-remarks" {
			require.Equal(t, 1, d.Sections[i+1].Level, "a remark ends its chapter")
		}
	}
	// A chapter for which there are no results is there for its remark.
	require.Equal(t, "Published values", d.section("published").Title)
	require.Empty(t, d.section("published").Blocks)
	require.NotNil(t, d.section("published-remarks"))
	require.NoError(t, check(d))

	tree := checkPage(t, rendered(t, d))
	quotes := all(tree, "blockquote")
	require.Len(t, quotes, 3)
	for _, q := range quotes {
		require.Equal(t, source, textOf(all(q, "footer")[0]))
	}
	require.Len(t, all(quotes[0], "p"), 2)
	require.Equal(t, rendered(t, d), rendered(t, documentOf(t, worded("c", "x"))))
}

// What a director leaves out is Linktrial's.
func TestSomeWords(t *testing.T) {
	ds := worded("c", "x")
	ds.Words[0] = report.Words{Campaign: "c", Author: "Ada"}
	d := documentOf(t, ds)
	require.True(t, strings.HasPrefix(d.Title, "Field trial "))
	require.True(t, strings.HasPrefix(d.Claim, "Author: words of Ada"), d.Claim)
	require.Nil(t, d.section("summary"))
	ds.Words[0] = report.Words{Campaign: "c", Remarks: map[string]string{"method": "x"}}
	d = documentOf(t, ds)
	require.Empty(t, d.Author+d.Claim)
	require.Equal(t, "Remarks by the director", d.section("method-remarks").Title)
}

// A report without words is as it was before there were any.
func TestNoWords(t *testing.T) {
	page := rendered(t, documentOf(t, reporttest.Compared()))
	for _, part := range []string{".words", `class="words"`, "blockquote", "class=\"author", "Words of"} {
		require.False(t, strings.Contains(page, part), part)
	}
}

// Of several campaigns, each one's words are under its name.
func TestWordsOfSeveral(t *testing.T) {
	one, two := worded("aaaa", "x"), worded("bbbb", "y")
	two.Words[0].Summary, two.Words[0].Imported = "", &report.Import{Campaign: "bbbb", File: "r.json", At: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
	d := documentOf(t, report.Merge([]*report.Dataset{one, two}))
	require.True(t, strings.HasPrefix(d.Title, "Field trial "), "no campaign's title is that of all")
	require.Empty(t, d.Author+d.Claim)
	summary := d.section("summary")
	require.Equal(t, "Summaries by the directors", summary.Title)
	require.Len(t, summary.Blocks, 2)
	require.Equal(t, "Campaign aaaa: Title x", summary.Blocks[0].Words.Head)
	require.Equal(t, "Campaign bbbb: Title y", summary.Blocks[1].Words.Head)
	require.Contains(t, summary.Blocks[1].Words.Source, "they came with the campaign, which was imported from r.json")
	require.Equal(t, "Remarks", d.section("method-remarks").Title)
	require.Equal(t, []string{"Campaign aaaa", "Campaign bbbb"}, []string{d.section("method-remarks").Blocks[0].Words.Head, d.section("method-remarks").Blocks[1].Words.Head})
	checkPage(t, rendered(t, d))

	// Words of one of them are not those of all.
	d = documentOf(t, report.Merge([]*report.Dataset{one, reporttest.Compared()}))
	require.True(t, strings.HasPrefix(d.Title, "Field trial "))
	require.Equal(t, "Campaign aaaa: Title x", d.section("summary").Blocks[0].Words.Head)
}

// Words of a director are text, whatever they are.
func TestHostileWords(t *testing.T) {
	plain := checkPage(t, rendered(t, documentOf(t, worded("c", "x"))))
	for _, text := range hostileTexts {
		page := rendered(t, documentOf(t, worded("c", text)))
		tree := checkPage(t, page)
		for _, element := range []string{"p", "blockquote", "section", "footer", "style", "h1", "h2", "h3", "table", "svg"} {
			require.Len(t, all(tree, element), len(all(plain, element)), "%q: %s", text, element)
		}
		if shown := strings.Join(report.Paragraphs("Summary "+text), ""); text != "" {
			require.Equal(t, shown, textOf(all(all(tree, "blockquote")[0], "p")[0]))
		}
	}
}
