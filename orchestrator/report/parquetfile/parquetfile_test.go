package parquetfile

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

var columns = []Column{
	{"treatment", KindText}, {"at", KindInstant}, {"bytes", KindWhole}, {"acked", KindWhole}, {"rate", KindNumber}, {"valid", KindFlag}, {"never", KindNumber},
}

func written(t *testing.T, rows ...[]Value) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, columns...)
	for _, r := range rows {
		require.NoError(t, w.Write(r))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func opened(t *testing.T, content []byte) *parquet.File {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	return f
}

// read is all rows of a file.
func read(t *testing.T, f *parquet.File) (rows []parquet.Row) {
	t.Helper()
	for _, g := range f.RowGroups() {
		r := g.Rows()
		buf := make([]parquet.Row, 100)
		for {
			n, err := r.ReadRows(buf)
			for _, row := range buf[:n] {
				rows = append(rows, row.Clone())
			}
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
		}
		require.NoError(t, r.Close())
	}
	return rows
}

// Columns keep their order and types, and what has no value is null and not zero.
func TestValuesAreReadAgain(t *testing.T) {
	at := time.Date(2026, 3, 14, 15, 9, 26, 535_897_932, time.FixedZone("", 3600))
	f := opened(t, written(t,
		[]Value{Text("tcp-cubic"), Instant(at), Whole(1), Whole(0), Number(0.1), Flag(false), {}},
		[]Value{Text(""), Instant(time.Time{}), Whole(math.MaxInt64), {}, Number(math.Inf(1)), Flag(true), Number(math.NaN())},
		[]Value{Text("=1+1 \u2713"), {}, {}, {}, Number(0), {}, {}},
	))
	require.Equal(t, `message linktrial {
	optional binary treatment (STRING);
	optional int64 at (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
	optional int64 bytes (INT(64,true));
	optional int64 acked (INT(64,true));
	optional double rate;
	optional boolean valid;
	optional double never;
}`, f.Schema().String())
	var got []string
	for _, row := range read(t, f) {
		got = append(got, fmt.Sprintf("%v", []parquet.Value(row)))
	}
	require.Equal(t, []string{
		fmt.Sprintf("[tcp-cubic %d 1 0 0.1 false <null>]", at.UnixMicro()),
		fmt.Sprintf("[<null> <null> %d <null> <null> true <null>]", math.MaxInt64),
		"[=1+1 \u2713 <null> <null> <null> 0 <null> <null>]",
	}, got)
}

// A table without rows is a file with its columns.
func TestNoRows(t *testing.T) {
	f := opened(t, written(t))
	require.Zero(t, f.NumRows())
	require.Len(t, f.Schema().Fields(), len(columns))
}

// Files of any size need about the same memory, and the same rows give the same bytes.
func TestRowsAreNotKept(t *testing.T) {
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := live(), uint64(0)
	w := NewWriter(io.Discard, columns...)
	const rows = 4*rowsInGroup + 7
	for i := range rows {
		require.NoError(t, w.Write([]Value{
			Text("tcp-cubic"), Instant(time.Unix(int64(i), 0)), Whole(int64(i) * 7919), Whole(int64(i)), Number(math.Sqrt(float64(i))), Flag(i%3 == 0), Text("")}))
		if i%20_000 == 0 {
			most = max(most, live())
		}
	}
	require.NoError(t, w.Close())
	require.Less(t, most-min(most, before), uint64(8<<20))
	require.EqualValues(t, rows, w.file.File().NumRows())
	require.Len(t, w.file.File().RowGroups(), 5)
	row := []Value{Text("a"), Instant(time.Unix(7, 0)), Whole(1), Whole(2), Number(3), Flag(true), Number(4)}
	require.Equal(t, written(t, row, row), written(t, row, row))
}
