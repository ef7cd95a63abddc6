// Package doccommand finds the command lines in the project's documents and in the examples of
// commands, and holds them against the commands and flags that exist. It is for tests.
package doccommand

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"linktrial/internal/checkout"
)

// Call is a call of a program in a document.
type Call struct {
	Document string // its file's name
	Line     string
	Args     []string
}

// InDocuments returns every call of a program in the README, in CONTRIBUTING and in docs/, which [Calls] finds in
// code blocks and in inline code.
func InDocuments(t testing.TB, program string) (out []Call) {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range markdownCode(string(text)) {
			for _, args := range Calls(code, program) {
				out = append(out, Call{filepath.Base(file), code, args})
			}
		}
	}
	return out
}

// Lines returns the lines of a text that are not empty, with continued lines joined.
func Lines(text string) []string {
	var out []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// inline is code within a line of Markdown.
var inline = regexp.MustCompile("`([^`]+)`")

// markdownCode returns the lines of code blocks, fenced or indented, and inline code.
func markdownCode(text string) []string {
	var out []string
	fenced := false
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			out = append(out, trimmed)
		default:
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// before is what may stand before the program's name in a command line.
var before = regexp.MustCompile(`^(sudo( -u \w+)?|docker compose exec( -T)? orchestrator|export \w+=|(sudo -E )?go run)$`)

// Calls returns the arguments of every call of a program in a line of shell, one for each
// alternative of a|b. A program with a slash is called by that path, another one in whatever
// folder it is.
func Calls(line, program string) [][]string {
	var out [][]string
	for _, words := range simpleCommands(line) {
		for i, w := range words {
			if w != program && (strings.Contains(program, "/") || filepath.Base(w) != program) || i > 0 && !before.MatchString(strings.Join(words[:i], " ")) {
				continue
			}
			out = append(out, alternatives(words[i+1:])...)
			break
		}
	}
	return out
}

// simpleCommands splits a line of shell into its commands and their words. A comment
// ends it; redirections are left out.
func simpleCommands(line string) [][]string {
	var out [][]string
	var words []string
	end := func() {
		if len(words) > 0 {
			out = append(out, words)
		}
		words = nil
	}
	fields := shellWord.FindAllString(strings.NewReplacer("$(", " ; ", ")", " ", "[", " ", "]", " ").Replace(line), -1)
	for i := 0; i < len(fields); i++ {
		switch f := fields[i]; {
		case strings.HasPrefix(f, "#"):
			end()
			return out
		case f == "&&" || f == ";" || f == "|" || f == "│":
			end()
		case f == ">" || f == "<":
			i++ // the file
		default:
			words = append(words, strings.Trim(f, `"'`))
		}
	}
	end()
	return out
}

// shellWord is a word of a line of shell: quoted, or up to the next white space.
var shellWord = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)

// alternatives expands words such as add|list.
func alternatives(words []string) [][]string {
	for i, w := range words {
		if choices := strings.Split(w, "|"); len(choices) > 1 {
			var out [][]string
			for _, c := range choices {
				out = append(out, alternatives(slices.Concat(words[:i], []string{c}, words[i+1:]))...)
			}
			return out
		}
	}
	return [][]string{words}
}

// withoutPlaceholders leaves out the … that stands for further arguments, and gives a
// number where a document has a letter.
func withoutPlaceholders(args []string) []string {
	var out []string
	for i, a := range args {
		switch {
		case a == "…" && (i == 0 || !strings.HasPrefix(args[i-1], "--")):
		case len(a) == 1 && a >= "A" && a <= "Z":
			out = append(out, "1")
		default:
			out = append(out, a)
		}
	}
	return out
}

// Parse finds the command that the arguments call in a tree of commands that nothing else
// uses, and parses its flags. With complete, its arguments and required flags must be there
// too, and the plans that it names.
func Parse(root *cobra.Command, args []string, complete bool) error {
	root.InitDefaultCompletionCmd()
	root.InitDefaultVersionFlag()
	if !complete {
		args = withoutPlaceholders(args)
	}
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if c.Hidden {
		return fmt.Errorf("%s is not in the help", c.CommandPath())
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	positional := c.Flags().Args()
	if c.Annotations["runs"] == "subcommands" && len(positional) > 0 {
		return fmt.Errorf("%s has no command %q", c.CommandPath(), positional[0])
	}
	if !complete {
		return nil
	}
	top, err := checkout.Root()
	if err != nil {
		return err
	}
	for _, arg := range positional {
		if _, err := os.Stat(filepath.Join(top, arg)); strings.HasPrefix(arg, "plans/") && err != nil {
			return err
		}
	}
	return errors.Join(c.ValidateArgs(positional), c.ValidateRequiredFlags(), c.ValidateFlagGroups())
}
