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

type faultRow struct{ seen, whose, test string }

// faultTable is the table "Whose fault" of docs/data-format.md by reason.
func faultTable(t *testing.T) map[string]faultRow {
	b, err := os.ReadFile("../../docs/data-format.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(b), "\n### Whose fault\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n### ")
	out := map[string]faultRow{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 4 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		require.NotContains(t, out, cells[0], "twice in the table")
		out[cells[0]] = faultRow{cells[1], cells[2], cells[3]}
	}
	return out
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
		require.Contains(t, []string{"protocol", "apparatus", "figure", "nobody", "person"}, row.whose, reason)
		// These two are of a listener and of an attempt that was cut off, which have their own rules.
		if reason != string(contract.CodeListenFailed) && reason != ReasonInterrupted {
			require.Equal(t, row.whose == "apparatus", ApparatusFault(reason), reason)
		}
		require.False(t, FalseFigure(reason) && row.whose != "figure", reason)
		require.False(t, ApparatusFault(reason) && Final(reason), reason)
	}
	for reason := range table {
		require.True(t, all[reason], "%q is in the table, and no code has it", reason)
	}
}

// The tests that the table names exist.
func TestWhoseFaultIsTested(t *testing.T) {
	for reason, row := range faultTable(t) {
		for test := range strings.SplitSeq(row.test, "`, `") { // some reasons have more than one
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
