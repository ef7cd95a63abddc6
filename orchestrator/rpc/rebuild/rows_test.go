package rebuild

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// passedOver are the tables of which a bag's rows are not taken, and why.
var passedOver = map[string][]string{
	"it follows from the run sheets": {"trials"},
	"it follows from the journals": {"journal", "journal_pages", "attempts", "flows", "receptions", "probes", "probe_receptions", "listeners", "clock_offsets", "telemetry",
		"samples", "sample_spans"},
	"no exported file has it": {"imports", "saved_plans", "recurrences", "schedules", "conformance", "preflights", "preflight_checks", "preflight_treatments", "links", "users",
		"provider_accounts", "second_factors", "recovery_codes", "sessions", "api_tokens", "audit", "audit_heads", "node_tokens", "node_certificates", "driver_approvals",
		"notifications", "notification_begin", "notification_channels", "notification_deliveries"},
	"it is of the schema": {"goose_db_version"},
}

// Of every table it is decided whether its rows are taken: files that are made of one that is
// passed over would differ.
func TestEveryTableIsDecided(t *testing.T) {
	o := newOriginal(t)
	list, err := o.conn.Query(t.Context(), `SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(list, pgx.RowTo[string])
	require.NoError(t, err)
	var decided []string
	for _, x := range slices.Concat(beforeTrials, afterTrials, afterJournals) {
		decided = append(decided, x.name)
	}
	for _, names := range passedOver {
		decided = append(decided, names...)
	}
	require.ElementsMatch(t, all, decided)
}

// FuzzRow: a row of a stranger gives columns of the schema alone, each once.
func FuzzRow(f *testing.F) {
	columns := []string{"run_id", "role", "node", "committed_seq"}
	f.Add(`{"run_id": "a-1", "role": "client", "node": "n", "committed_seq": 7}`)
	f.Add(`{"run_id": "a-1", "node": null}`)
	f.Add(`{"run_id) SELECT 1; --": 1}`)
	f.Add(`[1]`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, line string) {
		r := &rows{columns: map[string][]string{"run_nodes": columns}}
		for _, only := range [][]string{nil, {"run_id", "role", "node"}} {
			row, given, err := r.row(&table{name: "run_nodes", only: only}, []byte(line))
			if err != nil {
				require.Nil(t, given)
				continue
			}
			var out map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(row, &out))
			require.Len(t, given, len(out))
			for _, c := range given {
				require.Contains(t, out, c)
				require.Contains(t, columns, c)
				require.True(t, only == nil || slices.Contains(only, c))
			}
		}
	})
}
