// Package parquetfile writes tables as Apache Parquet files: typed columns, in the order in
// which they are stated, that pandas, R, DuckDB and Spark read without being told anything.
package parquetfile

import (
	"io"
	"math"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"
)

// MediaType is that of the files (registered with IANA in 2024).
const MediaType = "application/vnd.apache.parquet"

// Kind is the type of a column's values. Each column may be without a value in any row.
type Kind int

const (
	KindText    Kind = iota // STRING, with a dictionary
	KindWhole               // INT64
	KindNumber              // DOUBLE
	KindFlag                // BOOLEAN
	KindInstant             // TIMESTAMP in microseconds, UTC
)

// Column is one column of a file.
type Column struct {
	Name string
	Kind Kind
}

// rowsInGroup bounds the rows of a row group, and with them what is in memory. Readers take
// a group at a time, too, so much smaller ones would make them slow.
const rowsInGroup = 50_000

// maxDictionary bounds the dictionary of a column of texts in a row group, in bytes: names
// recur, digests and messages do not.
const maxDictionary = 256 << 10

// Writer writes one file.
type Writer struct {
	file *parquet.GenericWriter[any]
	rows []parquet.Row
	next int // of rows
}

// NewWriter returns a writer whose rows have the columns.
func NewWriter(w io.Writer, columns ...Column) *Writer {
	out := &Writer{rows: make([]parquet.Row, 64), file: parquet.NewGenericWriter[any](w,
		parquet.NewSchema("linktrial", newTable(columns)),
		parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(rowsInGroup),
		parquet.PageBufferSize(64<<10),
		parquet.DataPageStatistics(true),
		parquet.DictionaryMaxBytes(maxDictionary),
		// By default the library says its own version. The same rows give the same bytes.
		parquet.CreatedBy("linktrial", "", ""))}
	for i := range out.rows {
		out.rows[i] = make(parquet.Row, len(columns))
	}
	return out
}

// Write writes a row, whose values are those of the columns in their order. It keeps none
// of them.
func (w *Writer) Write(values []Value) error {
	row := w.rows[w.next]
	for i, v := range values {
		level := 1
		if v.value.IsNull() {
			level = 0
		}
		row[i] = v.value.Level(0, level, i)
	}
	if w.next++; w.next < len(w.rows) {
		return nil
	}
	return w.flush()
}

func (w *Writer) flush() error {
	_, err := w.file.WriteRows(w.rows[:w.next])
	w.next = 0
	return err
}

// Close writes what is left and the file's footer. It does not close the file.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.file.Close()
}

// Value is one cell; the zero value is of a cell without a value.
type Value struct{ value parquet.Value }

// Text is a text; an empty one is no value, as in a CSV file.
func Text(s string) Value {
	if s == "" {
		return Value{}
	}
	return Value{parquet.ByteArrayValue([]byte(s))}
}

// Whole is a whole number.
func Whole(n int64) Value { return Value{parquet.Int64Value(n)} }

// Number is a number; one that is none, or not finite, is no value.
func Number(x float64) Value {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return Value{}
	}
	return Value{parquet.DoubleValue(x)}
}

// Flag is true or false.
func Flag(b bool) Value { return Value{parquet.BooleanValue(b)} }

// Instant is a time, of which microseconds are kept; the zero time is no value.
func Instant(t time.Time) Value {
	if t.IsZero() {
		return Value{}
	}
	return Value{parquet.Int64Value(t.UnixMicro())}
}

// table is a row's type. A [parquet.Group] alone orders its fields by their names.
type table struct {
	parquet.Group
	fields []parquet.Field
}

func newTable(columns []Column) *table {
	t := &table{Group: parquet.Group{}}
	at := map[string]int{}
	for i, c := range columns {
		t.Group[c.Name], at[c.Name] = parquet.Optional(c.Kind.node()), i
	}
	t.fields = t.Group.Fields()
	slices.SortFunc(t.fields, func(a, b parquet.Field) int { return at[a.Name()] - at[b.Name()] })
	return t
}

func (t *table) Fields() []parquet.Field { return t.fields }

func (k Kind) node() parquet.Node {
	switch k {
	case KindWhole:
		return parquet.Int(64)
	case KindNumber:
		return parquet.Leaf(parquet.DoubleType)
	case KindFlag:
		return parquet.Leaf(parquet.BooleanType)
	case KindInstant:
		return parquet.Timestamp(parquet.Microsecond)
	}
	return parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
}
