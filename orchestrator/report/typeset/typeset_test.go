package typeset_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"linktrial/internal/checkout"
	"linktrial/orchestrator/report/document"
	"linktrial/orchestrator/report/typeset"
)

// TestMain sets with the Typst that make build has left, where no other one is named.
func TestMain(m *testing.M) {
	if root, err := checkout.Root(); err == nil && os.Getenv(typeset.Variable) == "" {
		os.Setenv(typeset.Variable, filepath.Join(root, "bin", "typst"))
	}
	os.Exit(m.Run())
}

// set sets a document, with the folder for temporary files of its own.
func set(t *testing.T, d *document.Document) []byte {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	pdf, err := typeset.PDF(t.Context(), d)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(pdf), "%PDF-"))
	requireEmpty(t, os.TempDir())
	return pdf
}

func requireEmpty(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

// textOf is the text of a PDF as poppler reads it, without blanks: lines break anywhere.
func textOf(t *testing.T, pdf []byte) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "pdftotext", "-raw", "-", "-")
	cmd.Stdin = strings.NewReader(string(pdf))
	text, err := cmd.Output()
	require.NoError(t, err, "pdftotext is of Debian's package poppler-utils (make deps-test)")
	return withoutBlanks(string(text))
}

func withoutBlanks(text string) string { return strings.Join(strings.Fields(text), "") }

// TestSameBytes: the same document is the same bytes, wherever and whenever it is set, and is
// tagged (Typst refuses what is not PDF/UA-1).
func TestSameBytes(t *testing.T) {
	first := set(t, sample(t, "A title"))
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("LC_ALL", "C")
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	require.Equal(t, first, set(t, sample(t, "A title")))
	for _, part := range []string{"/MarkInfo", "/StructTreeRoot", "/Lang(en)", "pdfuaid:part"} {
		require.Contains(t, withoutBlanks(string(first)), part)
	}
	require.NotContains(t, string(first), "/CreationDate")
}

// TestContents: everything that a document has is in the PDF, numbered, with the running line
// on every page.
func TestContents(t *testing.T) {
	d := sample(t, "Text")
	d.Title, d.Running, d.Partial = "Field trial", "plan · campaign 7", "Not the whole campaign."
	text := textOf(t, set(t, d))
	for _, part := range []string{"Prepared", "Reviewed", "Approved", "Signature", "Contents", "1Text", "2.1Text", "3Everytrial", "Table1.Text", "Table2.", "Figure1.Text", digest, "second", "1234.5", "ByText", "third", "WordsofText"} {
		require.Contains(t, text, part)
	}
	pages := regexp.MustCompile(`Page\d+of(\d+)`).FindAllStringSubmatch(text, -1)
	require.Greater(t, len(pages), 4)
	require.Equal(t, fmt.Sprint(len(pages)), pages[0][1])
	require.Equal(t, len(pages), strings.Count(text, "plan·campaign7"))
	require.Equal(t, len(pages)+1, strings.Count(text, "Notthewholecampaign."), "on every page, and in the title block")
	require.Greater(t, strings.Count(text, "Column13"), 1, "the head of a long table is on each of its pages")
}

// TestHostile: what people typed stays text, in every field.
func TestHostile(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"markup":         {`#panic("x") *bold* _it_ = head <label> @ref // comment /* */ ---`, ""},
		"reading":        {`#read("/etc/passwd") #include "document.json" #image("x.svg")`, ""},
		"mathematics":    {`$x^2$ $ \\ \u{41} \ #`, ""},
		"end of strings": {`"); panic("x"); ("`, ""},
		"XML":            {`<script>alert(1)</script> &amp; ]]> <image href="/etc/passwd"/>`, ""},
		"PDF":            {`) Tj ET endstream endobj %%EOF`, ""},
		"controls":       {"a\x00b\x1b[31mc\x7f\u0085d\u2028e", "a[U+0000]b[U+001B][31mc[U+007F]de"},
		"right to left":  {"abc \u202eדא\u202c ع", "abc[U+202E][U+05D3][U+05D0][U+202C][U+0639]"},
		"emoji":          {"👩‍🚀 中 e\u0301 \u0301", "[U+1F469][U+200D][U+1F680][U+4E2D]é[U+0301]"},
		"bad UTF-8":      {"a\xffb", "a\ufffdb"},
		"long":           {strings.Repeat("W", 10_000), strings.Repeat("W", 9_000)},
		"long, two":      {"a " + strings.Repeat("я", 10_000) + " b", ""},
		"empty":          {"", "TCPCubic"},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want
			if want == "" {
				want = c.text
			}
			d := sample(t, c.text)
			text := textOf(t, set(t, d))
			if strings.HasPrefix(name, "long") {
				// Pages' heads and feet are in the middle of it.
				require.Greater(t, strings.Count(text, c.text[2:4]), len(want)/2)
				return
			}
			require.Greater(t, strings.Count(text, withoutBlanks(want)), 8)
			require.NotContains(t, text, "root:x:0")
		})
	}
}

// TestSettable: Typst sets every character that is not written as its number, in any order.
func TestSettable(t *testing.T) {
	var all []rune
	typeset.Settable(func(r rune) { all = append(all, r) })
	d := &document.Document{Title: string(all), Sections: []document.Section{{Title: string(all), Level: 1, Number: "1", Blocks: []document.Block{
		{Paragraph: string(all)}, {Facts: []document.Fact{{Name: string(all), Value: string(all), Mono: true}}},
	}}}}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		word := make([]rune, 200)
		for i := range word {
			word[i] = all[random.IntN(len(all))]
		}
		d.Sections[0].Blocks = append(d.Sections[0].Blocks, document.Block{Facts: []document.Fact{{Name: string(word), Value: string(word)}}})
	}
	text := textOf(t, set(t, d))
	require.False(t, strings.Contains(text, "[U+"))
	for _, r := range all {
		if !unicode.IsSpace(r) {
			if one := norm.NFC.String(string(r)); !strings.Contains(text, one) {
				t.Errorf("%U is not in the text", r)
			}
		}
	}
}

// TestLong: a table of 10 000 rows is set, every row and the heads on each page, within bounds.
func TestLong(t *testing.T) {
	start := time.Now()
	pdf := set(t, &document.Document{Title: "Long", Sections: []document.Section{{Title: "Every trial", Level: 1, Number: "1", Blocks: []document.Block{{Table: trials(10_000, 10)}}}}})
	require.Less(t, time.Since(start), 30*time.Second)
	text := textOf(t, pdf)
	for _, row := range []int{0, 5_000, 9_999} {
		require.Contains(t, text, fmt.Sprintf("%d.2%[1]d.3%[1]d.4%[1]d.5", row))
	}
	require.Greater(t, strings.Count(text, "Column8Column9"), 50)
}

// TestMissing: a machine without Typst or Python has one sentence that says what to do.
func TestMissing(t *testing.T) {
	broken := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(broken, "typst"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "typst", "__init__.py"), []byte("from ._typst import *\n"), 0o644))
	for name, c := range map[string]struct{ folder, path, want string }{
		"no Typst":  {"/nonexistent", os.Getenv("PATH"), "Typst is not in /nonexistent: 'make build' and the laptop package put it beside the program"},
		"no Python": {os.Getenv(typeset.Variable), t.TempDir(), "install Debian's package python3"},
		"half":      {broken, os.Getenv("PATH"), "python3 cannot load Typst from " + broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(typeset.Variable, c.folder)
			t.Setenv("PATH", c.path)
			t.Setenv("TMPDIR", t.TempDir())
			_, err := typeset.PDF(t.Context(), &document.Document{Title: "x"})
			require.ErrorIs(t, err, typeset.ErrMissing)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			requireEmpty(t, os.TempDir())
		})
	}
}

// slow is a Typst that takes ten minutes, and leaves the number of its process in a file.
func slow(t *testing.T) (pidFile string) {
	t.Helper()
	folder := t.TempDir()
	pidFile = filepath.Join(folder, "pid")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "typst"), 0o755))
	source := fmt.Sprintf("import os, time\nopen(%q, 'w').write(str(os.getpid()))\ntime.sleep(600)\n", pidFile)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "typst", "__init__.py"), []byte(source), 0o644))
	t.Setenv(typeset.Variable, folder)
	t.Setenv("TMPDIR", t.TempDir())
	return pidFile
}

// TestCancelled: a context that ends takes the process and the folder with it; who waits for
// its turn goes, too.
func TestCancelled(t *testing.T) {
	pidFile := slow(t)
	why := errors.New("the client has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() {
		_, err := typeset.PDF(ctx, &document.Document{Title: "x"})
		ended <- err
	}()
	var pid string
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(pidFile)
		pid = string(b)
		return err == nil && pid != ""
	}, 20*time.Second, 10*time.Millisecond)

	waiting, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, err := typeset.PDF(waiting, &document.Document{Title: "x"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "waiting for another one")

	cancel(why)
	require.ErrorIs(t, <-ended, why)
	require.NoDirExists(t, "/proc/"+pid)
	requireEmpty(t, os.TempDir())
}

// TestBeside: several at once get theirs, one after the other.
func TestBeside(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var all sync.WaitGroup
	texts := []string{"one", "two", "three", "four"}
	got, errs := make([][]byte, len(texts)), make([]error, len(texts))
	for i, text := range texts {
		d := sample(t, text)
		all.Go(func() { got[i], errs[i] = typeset.PDF(t.Context(), d) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	for i, text := range texts {
		require.Contains(t, textOf(t, got[i]), "Figure1."+text)
	}
	requireEmpty(t, os.TempDir())
}

// TestFailure: what Typst says of a drawing that it cannot read is one clipped sentence.
func TestFailure(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d := &document.Document{Title: "x", Sections: []document.Section{{Title: "Results", Level: 1, Blocks: []document.Block{{Figure: &document.Figure{Alt: "x", SVG: []byte("<svg")}}}}}}
	_, err := typeset.PDF(t.Context(), d)
	require.ErrorContains(t, err, "report as PDF: typesetting failed: ")
	require.NotErrorIs(t, err, typeset.ErrMissing)
	require.NotContains(t, err.Error(), "\n")
	require.Less(t, len(err.Error()), 1000)
	requireEmpty(t, os.TempDir())
}
