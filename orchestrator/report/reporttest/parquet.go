package reporttest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report/wording"
)

// SameTable fails unless a Parquet file has the columns and the values of a CSV file. What
// a CSV file rounds, it rounds to a millionth or to nine digits.
func SameTable(t *testing.T, csvText string, parquetFile []byte) {
	t.Helper()
	want, err := csv.NewReader(strings.NewReader(csvText)).ReadAll()
	require.NoError(t, err)
	f, err := parquet.OpenFile(bytes.NewReader(parquetFile), int64(len(parquetFile)))
	require.NoError(t, err)
	var names []string
	for _, field := range f.Schema().Fields() {
		names = append(names, field.Name())
	}
	require.Equal(t, want[0], names)
	require.EqualValues(t, len(want)-1, f.NumRows())
	i := 0
	for _, g := range f.RowGroups() {
		rows, buf := g.Rows(), make([]parquet.Row, 100)
		for {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				i++
				for k, v := range row {
					if text := want[i][k]; !sameCell(text, v, f.Schema().Fields()[k]) {
						require.Failf(t, "differs", "row %d, %s: %v, in the CSV file %q", i, names[k], v, text)
					}
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
		require.NoError(t, rows.Close())
	}
	require.Equal(t, len(want)-1, i)
}

func sameCell(text string, v parquet.Value, column parquet.Field) bool {
	if v.IsNull() || text == "" {
		return v.IsNull() && text == ""
	}
	switch v.Kind() {
	case parquet.Boolean:
		return text == strconv.FormatBool(v.Boolean())
	case parquet.Double:
		x, err := strconv.ParseFloat(text, 64)
		return err == nil && math.Abs(x-v.Double()) <= max(5.1e-7, math.Abs(x)*1e-9)
	case parquet.Int64:
		if !strings.HasPrefix(column.Type().String(), "TIMESTAMP") {
			return text == fmt.Sprint(v.Int64())
		}
		at, err := time.Parse(time.RFC3339Nano, text)
		return err == nil && at.UnixMicro() == v.Int64()
	}
	return text == wording.Cell(string(v.ByteArray()))
}
