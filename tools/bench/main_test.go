package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/doccommand"
	"linktrial/internal/testkind"
)

// asBench has the program of the tests be the bench.
const asBench = "LINKTRIAL_TEST_BENCH"

func TestMain(m *testing.M) {
	if os.Getenv(asBench) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// called runs the bench, as a process of its own with a data folder of its own, to its end.
// It returns what was printed, and the exit code.
func called(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: the lab makes network namespaces")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asBench+"=1", "LINKTRIAL_DATA="+t.TempDir(),
		"LINKTRIAL_ORCHESTRATOR=http://127.0.0.1:9") // nobody listens there
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func tree() *cobra.Command { return newBench(&setting.Settings{Program: "/nowhere/linktrial"}) }

// The README, the documents and the help name sections and flags that exist.
func TestDocuments(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "reads documents")
	const program = "./tools/bench"
	for _, line := range doccommand.Lines(tree().Example) {
		calls := doccommand.Calls(line, program)
		require.Len(t, calls, 1, line)
		require.NoError(t, doccommand.Parse(tree(), calls[0], true), line)
	}
	calls := doccommand.InDocuments(t, program)
	for _, c := range calls {
		if err := doccommand.Parse(tree(), c.Args, true); err != nil {
			t.Errorf("%s: %q: %v", c.Document, c.Line, err)
		}
	}
	if len(calls) < 15 {
		t.Errorf("only %d command lines were found", len(calls))
	}
}

// The help says what each section measures, in the order in which they run.
func TestHelp(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "reads a text")
	rest := tree().Long
	for _, s := range sections {
		_, after, found := strings.Cut(rest, "\n  "+s.name+" ")
		if !found {
			t.Fatalf("%s is not in the help, or not in its place", s.name)
		}
		rest = after
	}
}

// Without the built program nothing is measured, and the error says what to do.
func TestNotBuilt(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "starts nothing")
	t.Setenv(binVariable, t.TempDir())
	program, err := builtProgram()
	require.NoError(t, err)
	_, err = versionOf(t.Context(), program)
	require.ErrorContains(t, err, "run make build first")
	t.Setenv(binVariable, "")
	program, err = builtProgram()
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(program, "/bin/linktrial") && !strings.Contains(program, "tools"), program)
}
