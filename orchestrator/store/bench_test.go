package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/orchestrator/store/synthetic"
)

// tenThousand are campaigns of 10 000 trials: one long run, several, and the
// hundreds of a sweep.
var tenThousand = []synthetic.Shape{
	{ID: "longrun", Runs: 1, Iterations: 2500, Treatments: 4, Samples: 2},
	{ID: "ordinary", Runs: 10, Iterations: 250, Treatments: 4, Samples: 2},
	{ID: "sweep", Runs: 500, Iterations: 5, Treatments: 4, Samples: 2},
}

func filled(b *testing.B, shape synthetic.Shape) *store.Store {
	b.Helper()
	url := storetest.URL(b)
	conn, err := pgx.Connect(b.Context(), url)
	require.NoError(b, err)
	defer func() { _ = conn.Close(b.Context()) }()
	require.NoError(b, synthetic.Fill(b.Context(), conn, shape))
	s, err := store.Open(b.Context(), url, nil)
	require.NoError(b, err)
	b.Cleanup(s.Close)
	return s
}

// BenchmarkDataset reads all that exports show.
func BenchmarkDataset(b *testing.B) {
	for _, shape := range tenThousand {
		b.Run(shape.ID, func(b *testing.B) {
			s := filled(b, shape)
			for b.Loop() {
				ds, err := s.Dataset(b.Context(), store.Scope{Campaign: shape.ID}, nil)
				require.NoError(b, err)
				require.Len(b, ds.Runs, shape.Runs)
			}
		})
	}
}

// BenchmarkValues reads what tables and figures are made from: as after the start, with
// sheets that are known, and with runs that are.
func BenchmarkValues(b *testing.B) {
	for _, shape := range tenThousand {
		s := filled(b, shape)
		for name, forget := range map[string]func(){"first": func() { s.ForgetRuns(); s.ForgetSheets() }, "sheets": s.ForgetRuns, "again": func() {}} {
			b.Run(shape.ID+"/"+name, func(b *testing.B) {
				for b.Loop() {
					forget()
					f, err := s.Measured(b.Context(), []store.Scope{{Campaign: shape.ID}})
					require.NoError(b, err)
					require.Len(b, f[0].Dataset.Runs, shape.Runs)
				}
			})
		}
	}
}
