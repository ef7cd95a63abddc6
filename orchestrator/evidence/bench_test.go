package evidence

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkVerify opens and checks a bag of two runs with 2 journals of 50 000 records each.
func BenchmarkVerify(b *testing.B) {
	m := newMade(b)
	r := &m.index.Runs[0]
	for i, n := range m.nodes {
		name := JournalFile(r.ID, n.name)
		m.files[name] = m.journal(r, n, 50_000)
		r.Nodes[i].Records = 50_002
		m.state(r, n, nil)
	}
	m.seal()
	archive := m.zip()
	bytes := int64(0)
	for _, f := range m.files {
		bytes += int64(len(f))
	}
	b.SetBytes(bytes)
	b.ReportAllocs()
	for b.Loop() {
		bag, err := openBytes(archive, DefaultLimits())
		require.NoError(b, err)
		v, err := Verify(b.Context(), bag, m.knownKeys(), nil)
		require.NoError(b, err)
		require.Zero(b, v.Findings())
	}
}
