package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
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
		if c.Hidden {
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

// An unknown subcommand is an error that lists those that exist.
func TestUnknownCommand(t *testing.T) {
	for args, want := range map[string]string{
		"plan nonsense":           `unknown command "nonsense" for "linktrial plan". Its commands are: check, delete, explain,`,
		"run pasue x-1":           `unknown command "pasue" for "linktrial run". Did you mean pause? Its commands are: abort,`,
		"run nonsense":            "Its commands are: abort, commands, continue, exclude, include, list, pause, repeat, resume, skip, start",
		"nonsense":                `unknown command "nonsense" for "linktrial". Its commands are: agent, audit-log, audit-run, backup,`,
		"nods":                    "Did you mean node or nodes?",
		"install-bundle nonsense": "Its commands are: check, check-images, create, key, sign, sign-images",
		"backup create extra":     `unknown command "extra"`,
		"run start a.yaml extra":  "accepts 1 arg(s), received 2",
	} {
		root := newRoot()
		root.SetArgs(strings.Fields(args))
		root.SetErr(io.Discard)
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("linktrial %s: %v, expected %s", args, err, want)
		}
	}
}

// An error ends the program with 1, unless it has a code of its own; a code alone says nothing.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err     error
		code    int
		message string
	}{
		{nil, 0, ""},
		{errors.New("no such run"), 1, "no such run"},
		{setting.ExitCode(2), 2, ""},
		{fmt.Errorf("after a check: %w", setting.ExitCode(2)), 2, ""},
		{setting.Failed{Code: 3, Err: errors.New("no such run")}, 3, "no such run"},
		{fmt.Errorf("results: %w", setting.Failed{Code: 3, Err: errors.New("no such run")}), 3, "results: no such run"},
	} {
		if code, message := exitOf(c.err); code != c.code || message != c.message {
			t.Errorf("%v: exit code %d with %q, expected %d with %q", c.err, code, message, c.code, c.message)
		}
	}
}

// Of results --check, whatever keeps requirements from being judged has a code that no outcome
// has: also a flag that is wrong, wherever --check is.
func TestCheckIsNoOutcomeWhereItIsNotMade(t *testing.T) {
	for _, args := range []string{"results --check --formt csv", "results --formt csv --check", "results --check --format csv", "results --check --leave-out udt", "results x --check --out there"} {
		root := newRoot()
		root.SetArgs(append(strings.Fields(args), "--orchestrator", "http://127.0.0.1:1"))
		root.SetErr(io.Discard)
		if code, message := exitOf(root.ExecuteContext(t.Context())); code != 3 || message == "" {
			t.Errorf("linktrial %s: exit code %d with %q, expected 3", args, code, message)
		}
	}
}
