package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/report/wording"
)

// Bounds of what a director adds to a report, in characters.
const (
	MaxWordsLine    = 200 // title and author
	MaxWordsSummary = 10_000
	MaxWordsRemark  = 5_000
)

// Words is what a director adds to the report of a campaign in her own words. Nothing that is
// computed follows from it.
type Words struct {
	Campaign string `json:"campaign"`
	Title    string `json:"title,omitempty"`
	Author   string `json:"author,omitempty"`
	// Summary and remarks are paragraphs with empty lines between them.
	Summary string            `json:"summary,omitempty"`
	Remarks map[string]string `json:"remarks,omitempty"` // by [Chapter.Key]
	By      string            `json:"by,omitempty"`      // who saved them; empty: not known
	At      time.Time         `json:"at"`
	// Imported is where they come from, if they came with another orchestrator's campaign.
	Imported *Import `json:"imported,omitempty"`
}

// Chapter is a chapter of the report of a campaign.
type Chapter struct{ Key, Title string }

// Chapters are all that a report can have, in order. Each can have a remark.
var Chapters = []Chapter{
	{"conclusion", "Conclusion"},
	{"conditions", "Conditions"},
	{"method", "Method"},
	{"results", "Results"},
	{"comparisons", "Comparisons"},
	{"published", "Published values"},
	{"anomalies", "Anomalies"},
	{"definitions", "Metrics and where they are defined"},
	{"appendix", "Every trial"},
	{"provenance", "Provenance"},
}

// ChapterKeys are the keys of [Chapters].
func ChapterKeys() []string {
	out := make([]string, len(Chapters))
	for i, c := range Chapters {
		out[i] = c.Key
	}
	return out
}

// Empty reports whether there is no text.
func (w *Words) Empty() bool {
	return w.Title == "" && w.Author == "" && w.Summary == "" && len(w.Remarks) == 0
}

// Writer names whose words they are.
func (w *Words) Writer() string {
	return cmp.Or(wording.Clean(w.Author), wording.Clean(w.By), "the director")
}

// Source says in a sentence whose words they are, and that they are no result.
func (w *Words) Source() string {
	s := "Words of " + w.Writer() + ", not computed; written"
	if by := wording.Clean(w.By); by != "" && by != w.Writer() {
		s += " by " + by
	}
	s += " " + unit.Moment(w.At)
	if w.Imported != nil {
		s += "; they came with the campaign, which was " + w.Imported.Text()
	}
	return s + "."
}

// Tidy brings texts into the form in which they are kept: lines end in a line feed, nothing is
// blank at the ends, and what is empty is not there.
func (w *Words) Tidy() {
	tidy := func(s string) string {
		return strings.TrimSpace(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s))
	}
	w.Title, w.Author, w.Summary = tidy(w.Title), tidy(w.Author), tidy(w.Summary)
	remarks := map[string]string{}
	for key, text := range w.Remarks {
		if text = tidy(text); text != "" {
			remarks[key] = text
		}
	}
	if w.Remarks = remarks; len(remarks) == 0 {
		w.Remarks = nil
	}
}

// Check reports what is wrong with the texts, in one sentence; nil: nothing.
func (w *Words) Check() error {
	for _, x := range []struct {
		what, text string
		most       int
		line       bool
	}{{"title", w.Title, MaxWordsLine, true}, {"author", w.Author, MaxWordsLine, true}, {"summary", w.Summary, MaxWordsSummary, false}} {
		if err := CheckWords(x.text, x.most, x.line); err != nil {
			return fmt.Errorf("%s: %w", x.what, err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.Remarks)) {
		if keys := ChapterKeys(); !slices.Contains(keys, key) {
			return fmt.Errorf("remark on %s: a report has no such chapter%s; there are %s", yamldoc.Printable(wording.Clip(key, 40)), yamldoc.Suggest(key, keys), strings.Join(keys, ", "))
		}
		if err := CheckWords(w.Remarks[key], MaxWordsRemark, false); err != nil {
			return fmt.Errorf("remark on %s: %w", key, err)
		}
	}
	return nil
}

// CheckWords reports what is wrong with one of the texts of [Words], which has at most so many
// characters; line: in one line. Nil: nothing.
func CheckWords(text string, most int, line bool) error {
	if !utf8.ValidString(text) {
		return errors.New("it is not valid UTF-8")
	}
	for i, r := range text {
		if (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) && (line || r != '\n' && r != '\t') {
			return fmt.Errorf("it has the control character %U at byte %d, expected text without any%s", r, i, map[bool]string{true: ", in one line"}[line])
		}
	}
	if n := utf8.RuneCountInString(text); n > most {
		return fmt.Errorf("%d characters, expected at most %d", n, most)
	}
	return nil
}

// Paragraphs are those of a text of people, each in one line: empty lines divide them.
func Paragraphs(text string) (out []string) {
	var lines []string
	end := func() {
		if s := wording.Clean(strings.Join(lines, " ")); s != "" {
			out = append(out, s)
		}
		lines = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			end()
		} else {
			lines = append(lines, line)
		}
	}
	end()
	return out
}
