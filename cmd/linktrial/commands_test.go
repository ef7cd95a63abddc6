package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"linktrial/internal/doccommand"
)

// program is how command lines call it, in whatever folder it is.
const program = "linktrial"

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
		for _, line := range doccommand.Lines(c.Example) {
			all := doccommand.Calls(line, program)
			if len(all) == 0 {
				t.Errorf("%s: the example %q does not call linktrial", c.CommandPath(), line)
			}
			for _, args := range all {
				if err := doccommand.Parse(newRoot(), args, true); err != nil {
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
	calls := doccommand.InDocuments(t, program)
	for _, c := range calls {
		if err := doccommand.Parse(newRoot(), c.Args, false); err != nil {
			t.Errorf("%s: %q: %v", c.Document, c.Line, err)
		}
	}
	if len(calls) < 100 {
		t.Errorf("only %d command lines were found", len(calls))
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
