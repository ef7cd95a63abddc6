package terminal

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"Größe 3 µs, ✓":           "Größe 3 µs, ✓",
		"two\nlines\tof":          "two\nlines\tof",
		"\x1b]0;title\a\x1b[31m":  `\x1b]0;title\x07\x1b[31m`,
		"over\rwritten":           `over\x0dwritten`,
		"\x00\x7f\u009b":          `\x00\x7f\x9b`,
		"bad \xff UTF-8 \xe2\x82": `bad \xff UTF-8 \xe2\x82`,
		"back\u202ewards":         `back\u202ewards`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: got %q, expected %q", in, got, want)
		}
	}
}

// Whatever a label, a message or a name holds, progress shows no control characters.
func TestProgressShowsNoControlCharacters(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{out: &out, runs: map[string]*linktrialv1.Run{}, ended: map[string]map[int32]bool{}}
	const bad = "\x1b[2J\a\x00"
	p.Show(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_TrialEnded{TrialEnded: &linktrialv1.TrialEnded{RunId: "a-1", Treatment: bad,
		Attempt: &linktrialv1.AttemptRow{Verdict: "failed", Message: bad}}}})
	p.Show(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_Note{Note: &linktrialv1.Note{Text: bad}}})
	p.Show(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_Run{Run: &linktrialv1.Run{Id: "a-1", Radio: bad, State: linktrialv1.RunState_RUN_STATE_STOPPED, Message: bad}}})
	if strings.Count(out.String(), `\x1b[2J\x07\x00`) < 3 {
		t.Errorf("not every text is shown: %q", out.String())
	}
	if strings.ContainsFunc(out.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
		t.Errorf("control characters: %q", out.String())
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b[31m\xff\u202e\n")
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, obeyed) {
			t.Errorf("%q is shown as %q", s, got)
		}
		if Printable(got) != got {
			t.Errorf("%q is escaped twice", s)
		}
	})
}
