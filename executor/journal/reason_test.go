package journal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/protocols/contract"
)

// reasons are the values of the constants of reason.go.
func reasons(t *testing.T) map[string]bool {
	f, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	require.NoError(t, err)
	out := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range s.Names {
			if lit, ok := s.Values[i].(*ast.BasicLit); ok && strings.HasPrefix(name.Name, "Reason") {
				value, err := strconv.Unquote(lit.Value)
				require.NoError(t, err)
				out[value] = true
			}
		}
		return true
	})
	require.Greater(t, len(out), 25)
	return out
}

type faultRow struct{ seen, whose string }

// faultTable is the table of reasons in docs/data-format.md, Whose fault.
func faultTable(t *testing.T) map[string]faultRow {
	b, err := os.ReadFile("../../docs/data-format.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(b), "\n### Whose fault\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n### ")
	_, section, found = strings.Cut(section, "\n| reason |")
	require.True(t, found)
	out := map[string]faultRow{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		require.Len(t, cells, 3, line)
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		require.NotContains(t, out, cells[0], "twice in the table")
		out[cells[0]] = faultRow{cells[1], cells[2]}
	}
	return out
}

// heldBy are the tests that hold, of each reason, what must be seen for it.
var heldBy = map[string][]string{
	"connect-refused":     {"executor.TestPathVerdicts"},
	"connect-timeout":     {"executor.TestPathVerdicts"},
	"unreachable":         {"executor.TestPathVerdicts"},
	"reset":               {"executor.TestPathVerdicts"},
	"transfer-timeout":    {"executor.TestPathVerdicts"},
	"corrupted":           {"executor.TestPathVerdicts"},
	"protocol-violation":  {"protocols/harness.TestServerAgainstClients"},
	"internal":            {"executor.TestPathVerdicts"},
	"unsupported":         {"agents/runner.TestFaults"},
	"bad-parameters":      {"executor.TestRefusedParameters"},
	"listen-failed":       {"executor.TestListenerThatCannotListen"},
	"garbage":             {"agents/runner.TestFaults"},
	"flood":               {"agents/runner.TestFaults"},
	"driver-crashed":      {"agents/runner.TestFaults"},
	"exited":              {"agents/runner.TestFaults"},
	"wrong-result":        {"agents/runner.TestFaults"},
	"no-start":            {"executor.TestProcessNotStarted"},
	"no-process":          {"executor.TestProcessNotStarted"},
	"source-elsewhere":    {"executor.TestFlowsOfOneTrial"},
	"source-down":         {"agents/agent.TestSourceGoesDown"},
	"server-down":         {"agents/agent.TestServerGoesDown"},
	"relay-down":          {"agents/runner.TestOwnRelayIsDown"},
	"listener-failed":     {"executor.TestNodeSaysWhy"},
	"radio-down":          {"executor.TestInterfaceOutOfOrder"},
	"path-down":           {"executor.TestPathVerdicts"},
	"path-blocked":        {"executor.TestPortVerdicts"},
	"killed":              {"agents/runner.TestFaults"},
	"stopped":             {"executor.TestStoppedDuringAnAttempt"},
	"driver-changed":      {"executor.TestStoppedDuringAnAttempt", "agents/agent.TestDriverChangesDuringTheRun"},
	"host-starved":        {"executor.TestStarvedHost", "executor.TestLateRadio", "orchestrator/campaign.TestRulesOfValidity"},
	"control-traffic":     {"executor.TestControlTrafficInBand"},
	"foreign-traffic":     {"executor.TestForeignTraffic", "orchestrator/campaign.TestRulesOfValidity", "e2e.TestListenerThatJamsInField"},
	"undetermined":        {"executor.TestPathVerdicts"},
	"interrupted":         {"executor.TestResumeFromEveryCrashPoint"},
	"aborted":             {"executor.TestAbortInAPause"},
	"skipped":             {"executor.TestSkipOfTheRunningTrial"},
	"not-needed":          {"executor.TestRuleStops"},
	"longer-than-run":     {"executor/credible.TestClock"},
	"shorter-than-run":    {"executor/credible.TestClock"},
	"more-than-sent":      {"executor/credible.TestSent", "executor.TestReceivedIsWhatWasHandedOver", "e2e.TestFalseValuesInField"},
	"faster-than-radio":   {"executor/credible.TestFaster"},
	"faster-than-ideal":   {"executor.TestValuesAreHeldAgainstWhatWasSeen"},
	"fewer-than-lost":     {"executor.TestCountsAreHeldAgainstTheRadio"},
	"faster-than-packets": {"executor/credible.TestPackets", "agents/packettimes.TestSent", "agents/packettimes.TestArrived", "e2e.TestFalseValuesDoNotCount", "e2e.TestFalseValuesInField"},
	"server-failed":       {"orchestrator/store.TestServerContradictsTheClient"},
	"size-differs":        {"orchestrator/store.TestServerContradictsTheClient"},
	"digest-differs":      {"orchestrator/store.TestServerContradictsTheClient"},
	"longer-at-server":    {"orchestrator/store.TestServerContradictsTheClient"},
}

// The table says of every reason what must have been seen, and whose fault it is; the
// program does the same.
func TestWhoseFault(t *testing.T) {
	table, all := faultTable(t), reasons(t)
	for _, c := range contract.Codes {
		all[string(c)] = true
	}
	for reason := range all {
		row, ok := table[reason]
		if !ok {
			t.Errorf("docs/data-format.md, Whose fault: no row for %q", reason)
			continue
		}
		require.NotEmpty(t, row.seen, reason)
		require.Contains(t, []string{"protocol", "apparatus", "value", "nobody", "person"}, row.whose, reason)
		// These two are of a listener and of an attempt that was cut off, which have their own rules.
		if reason != string(contract.CodeListenFailed) && reason != ReasonInterrupted {
			require.Equal(t, row.whose == "apparatus", ApparatusFault(reason), reason)
		}
		require.False(t, FalseValue(reason) && row.whose != "value", reason)
		require.False(t, ApparatusFault(reason) && Final(reason), reason)
	}
	for reason := range table {
		require.True(t, all[reason], "%q is in the table, and no code has it", reason)
	}
}

// Every reason has a test, and these tests exist.
func TestWhoseFaultIsTested(t *testing.T) {
	table := faultTable(t)
	for reason := range table {
		require.NotEmpty(t, heldBy[reason], "%s: no test is named in heldBy", reason)
	}
	for reason, tests := range heldBy {
		require.Contains(t, table, reason)
		for _, test := range tests {
			at := strings.LastIndex(test, ".")
			require.Positive(t, at, "%s: %s", reason, test)
			files, err := filepath.Glob(filepath.Join("../..", test[:at], "*_test.go"))
			require.NoError(t, err)
			found := false
			for _, f := range files {
				b, err := os.ReadFile(f)
				require.NoError(t, err)
				found = found || regexp.MustCompile(`(?m)^func `+test[at+1:]+`\(`).Match(b)
			}
			require.True(t, found, "%s: there is no test %s", reason, test)
		}
	}
}
