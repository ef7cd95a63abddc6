package packing

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/store/storetest"
)

// Of every table of the schema it is decided whether a bag has its rows: a new one takes a line
// in the list.
func TestEveryTableIsDecided(t *testing.T) {
	s := storetest.Open(t)
	rows, err := s.Query(t.Context(), `SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' AND table_name <> 'goose_db_version'`)
	require.NoError(t, err)
	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	var decided []string
	for i := range tables {
		x := &tables[i]
		decided = append(decided, x.name)
		require.NotEmpty(t, x.why, x.name)
		require.Equal(t, x.where == "", x.order == "", x.name)
		rows, err := s.Query(t.Context(), `SELECT column_name::text FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1`, x.name)
		require.NoError(t, err)
		columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Subset(t, columns, append(x.only, x.without...), x.name)
	}
	require.ElementsMatch(t, there, decided)
}
