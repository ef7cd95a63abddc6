package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// commands returns c and all commands below it, cobra's own excepted.
func commands(c *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			out = append(out, commands(sub)...)
		}
	}
	return out
}

// Every command explains itself, has its place in the help, and its examples are
// complete command lines of this program.
func TestHelp(t *testing.T) {
	groups := map[string]bool{}
	for _, g := range newRoot().Groups() {
		groups[g.ID] = true
	}
	seen := 0
	for _, c := range commands(newRoot()) {
		seen++
		if c.Short == "" {
			t.Errorf("%s has no description", c.CommandPath())
		}
		if c.Hidden || c.Deprecated != "" {
			continue // in no help
		}
		if c.HasParent() && !c.Parent().HasParent() && !groups[c.GroupID] {
			t.Errorf("%s is in no group", c.CommandPath())
		}
		if c.Example == "" && c.Annotations["runs"] != "subcommands" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		names := map[string]bool{}
		for _, s := range c.Commands() {
			if names[s.Name()] {
				t.Errorf("%s has %s twice", c.CommandPath(), s.Name())
			}
			names[s.Name()] = true
		}
		for _, line := range lines(c.Example) {
			all := invocations(line)
			if len(all) == 0 {
				t.Errorf("%s: the example %q does not call linktrial", c.CommandPath(), line)
			}
			for _, args := range all {
				if err := parse(args, true); err != nil {
					t.Errorf("%s: the example %q: %v", c.CommandPath(), line, err)
				}
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d commands", seen)
	}
}

// The README, the documents and the container images name commands and flags that
// exist, under their present names.
func TestDocumentsNameExistingCommands(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../../README.md")
	checked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range markdownCode(string(text)) {
			for _, args := range invocations(code) {
				checked++
				if err := parse(args, false); err != nil {
					t.Errorf("%s: %q: %v", filepath.Base(file), code, err)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d command lines were found", checked)
	}
}

// No text of the program, its pages and its playbooks names a command by an earlier
// name.
func TestNoEarlierNames(t *testing.T) {
	var earlier []string
	for _, c := range commands(newRoot()) {
		if c.Deprecated != "" {
			earlier = append(earlier, regexp.QuoteMeta(c.CommandPath()))
		}
	}
	pattern := regexp.MustCompile(`(` + strings.Join(earlier, "|") + `)( |'|` + "`" + `|"|$|,|\\n)`)
	kinds := []string{".go", ".ts", ".vue", ".yml", ".yaml", ".sh", ".txt", ".proto", ""}
	skip := []string{".git", "node_modules", "bin", "build", "dist", "testdata", "gen"}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skip, d.Name()):
			return filepath.SkipDir
		case !d.Type().IsRegular() || !slices.Contains(kinds, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range pattern.FindAllString(string(text), -1) {
			t.Errorf("%s names %q", path, m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An unknown subcommand is an error that lists those that exist, and an earlier name
// leads to the same command as the new one.
func TestUnknownCommand(t *testing.T) {
	for args, want := range map[string]string{
		"plan nonsense":          `unknown command "nonsense" for "linktrial plan". Its commands are: check, delete, explain,`,
		"run pasue x-1":          `unknown command "pasue" for "linktrial run". Did you mean pause? Its commands are: abort,`,
		"run nonsense":           "Its commands are: abort, commands, continue, exclude, include, list, pause, repeat, resume, skip, start",
		"nonsense":               `unknown command "nonsense" for "linktrial". Its commands are: agent, audit, audit-run, backup,`,
		"nods":                   "Did you mean node or nodes?",
		"bundle nonsense":        "Its commands are: check, check-images, create, key, sign, sign-images",
		"backup create extra":    `unknown command "extra"`,
		"run start a.yaml extra": "accepts 1 arg(s), received 2",
	} {
		root := newRoot()
		root.SetArgs(strings.Fields(args))
		root.SetErr(io.Discard)
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("linktrial %s: %v, expected %s", args, err, want)
		}
	}
	for earlier, now := range map[string]string{
		"pause": "run pause", "orders": "run commands", "runs": "run list", "store backup": "backup create", "bundle check": "install-bundle check",
	} {
		root := newRoot()
		old, _, err := root.Find(strings.Fields(earlier))
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := root.Find(strings.Fields(now))
		if err != nil {
			t.Fatal(err)
		}
		if old == c || !strings.Contains(old.Deprecated, "linktrial "+now) || old.Flags().FlagUsages() != c.Flags().FlagUsages() {
			t.Errorf("linktrial %s (%s) is not linktrial %s", earlier, old.Deprecated, now)
		}
	}
}

// lines returns the lines of a text that are not empty, with continued lines joined.
func lines(text string) []string {
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
var before = regexp.MustCompile(`^(sudo( -u \w+)?|docker compose exec( -T)? orchestrator|export \w+=)$`)

// invocations returns the arguments of every call of linktrial in a line of shell, one
// for each alternative of a|b.
func invocations(line string) [][]string {
	var out [][]string
	for _, words := range simpleCommands(line) {
		for i, w := range words {
			if filepath.Base(w) != "linktrial" || i > 0 && !before.MatchString(strings.Join(words[:i], " ")) {
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

// parse finds the command that the arguments call and parses its flags, on a tree of
// its own. With complete, its arguments and required flags must be there too, and the
// plans that it names.
func parse(args []string, complete bool) error {
	root := newRoot()
	root.InitDefaultCompletionCmd()
	root.InitDefaultVersionFlag()
	if !complete {
		args = withoutPlaceholders(args)
	}
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if c.Deprecated != "" || c.Hidden {
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
	for _, arg := range positional {
		if _, err := os.Stat(filepath.Join("../..", arg)); strings.HasPrefix(arg, "plans/") && err != nil {
			return err
		}
	}
	return errors.Join(c.ValidateArgs(positional), c.ValidateRequiredFlags(), c.ValidateFlagGroups())
}
