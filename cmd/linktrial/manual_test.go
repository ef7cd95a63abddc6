package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"linktrial/cmd/linktrial/setting"
)

// manualFolder names the folder into which TestManual writes man pages and completions, as
// make handbook has it. They are made here, and by no command: what makes them is then no
// part of the program.
const manualFolder = "LINKTRIAL_MANUAL"

// manual returns the man pages of a tree of commands, and the completions of each shell, by
// their names in the folder of both.
func manual(t *testing.T, root *cobra.Command) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range inManual(root) {
		out["man/man1/"+strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"] = manPage(t, c)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"bash/linktrial":      func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"zsh/_linktrial":      func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"fish/linktrial.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
	} {
		var b bytes.Buffer
		require.NoError(t, write(&b))
		out["completions/"+name] = b.String()
	}
	return out
}

// inManual returns the commands that have a man page: those of the help.
func inManual(root *cobra.Command) (out []*cobra.Command) {
	for _, c := range commands(root) {
		if c.Hidden || c.HasParent() && c.Parent().Hidden {
			continue
		}
		out = append(out, c)
	}
	return out
}

// manDate is the date that cobra must have. A page has none: it would be that of the build.
var manDate = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

// installed are the defaults that differ from machine to machine, as a package's program has
// them when root starts it.
var installed = map[string]string{
	"orchestrator": setting.DefaultOrchestrator, "drivers": "/usr/lib/linktrial/drivers", "data": "/var/lib/linktrial", "catalog": "[]", "ca": "",
}

// noSwitch and noValue are what cobra writes where a flag has no default.
var noSwitch, noValue = regexp.MustCompile(`(?m)^(\\f.*)\[=false\]$`), regexp.MustCompile(`(?m)^(\\f.*=)(""|\[\])$`)

// manPage returns the man page of a command.
func manPage(t *testing.T, c *cobra.Command) string {
	t.Helper()
	c.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if value, ok := installed[f.Name]; ok {
			f.DefValue = value
		}
	})
	c.DisableAutoGenTag, c.Long = true, preformatted(c.Long)
	var b bytes.Buffer
	require.NoError(t, doc.GenMan(c, &doc.GenManHeader{Date: &manDate, Source: "Linktrial", Manual: "Linktrial"}, &b))
	dated := `"Jan 2001" "Linktrial"`
	require.Equal(t, 1, strings.Count(b.String(), dated), c.CommandPath())
	page := strings.Replace(b.String(), dated, `"" "Linktrial"`, 1)
	return escaped(noValue.ReplaceAllString(noSwitch.ReplaceAllString(page, "$1"), "$1…"))
}

// indented are lines of a help that a page has to leave as they are: a table or a command.
var indented = regexp.MustCompile(`(?m)(^  .*\n?)+`)

// preformatted is a help as Markdown.
func preformatted(help string) string {
	return indented.ReplaceAllStringFunc(help, func(lines string) string {
		return "\n```\n" + strings.TrimSuffix(lines, "\n") + "\n```\n\n"
	})
}

// escaped is a man page in ASCII, which roff reads in every locale.
func escaped(page string) string {
	var b strings.Builder
	for _, r := range page {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}

// Every command of the help has a man page with all of its help; the pages and completions of
// one program are always the same.
func TestManual(t *testing.T) {
	files := manual(t, newRoot())
	for _, name := range []string{"LINKTRIAL_ORCHESTRATOR", "LINKTRIAL_DRIVERS", "LINKTRIAL_DATA", "LINKTRIAL_CATALOG", "LINKTRIAL_CA", "HOME", "USER", "SOURCE_DATE_EPOCH"} {
		t.Setenv(name, "123")
	}
	require.Equal(t, files, manual(t, newRoot()), "another machine has other pages")
	seen := 0
	for _, c := range inManual(newRoot()) {
		name := "man/man1/" + strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, there := files[name]
		require.True(t, there, name)
		seen++
		text := words(page)
		requireWords(t, text, c.Short, name)
		requireWords(t, text, c.Long, name)
		requireWords(t, text, c.Example, name)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				requireWords(t, text, "--"+f.Name, name)
				requireWords(t, text, f.Usage, name)
			}
		})
	}
	require.Greater(t, seen, 60)
	require.Len(t, files, seen+3, "a hidden command has a man page")
	if dir := os.Getenv(manualFolder); dir != "" {
		for name, content := range files {
			file := filepath.Join(dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
		}
	}
}

// The pages render without a warning.
func TestManualRenders(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed")
	}
	args := []string{"-man", "-Tutf8", "-ww"}
	dir := t.TempDir()
	for name, content := range manual(t, newRoot()) {
		if filepath.Ext(name) == ".1" {
			file := filepath.Join(dir, filepath.Base(name))
			require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			args = append(args, file)
		}
	}
	var text, warnings bytes.Buffer
	cmd := exec.CommandContext(t.Context(), groff, args...)
	cmd.Stdout, cmd.Stderr = &text, &warnings
	require.NoError(t, cmd.Run())
	require.Empty(t, warnings.String())
	require.Contains(t, text.String(), "RADIO          profile of the attached radio", "the lines of a table are kept")
}

// notWord is what separates words, in a help as in the source of a man page.
var notWord = regexp.MustCompile(`[^\pL\pN]+`)

// words is a text as its words alone, and that of a man page without its escapes.
func words(text string) string {
	text = regexp.MustCompile(`\\f[A-Z]|\\&|\\\[u[0-9A-F]+\]|(?m)^\.[A-Z]{2}\b`).ReplaceAllString(text, " ")
	return " " + notWord.ReplaceAllString(text, " ") + " "
}

func requireWords(t *testing.T, page, help, name string) {
	t.Helper()
	if want := strings.TrimSpace(notWord.ReplaceAllString(help, " ")); !strings.Contains(page, " "+want+" ") && want != "" {
		t.Errorf("%s lacks %q", name, want)
	}
}
