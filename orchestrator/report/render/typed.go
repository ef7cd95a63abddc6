package render

import (
	"strconv"
	"time"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/parquetfile"
	"linktrial/orchestrator/report/wording"
)

// typed is a column of a table that there is as CSV and as Parquet, with the same values in
// both: what is an empty field in one is null in the other.
type typed[T any] struct {
	column[T]
	kind parquetfile.Kind
	cell func(T) parquetfile.Value
}

func untyped[T any](columns []typed[T]) []column[T] {
	out := make([]column[T], len(columns))
	for i := range columns {
		out[i] = columns[i].column
	}
	return out
}

func textColumn[T any](name string, value func(T) string) typed[T] {
	return typed[T]{column[T]{name, value}, parquetfile.KindText, func(r T) parquetfile.Value { return parquetfile.Text(wording.Clean(value(r))) }}
}

// wholeColumn has whole numbers; nil is no value.
func wholeColumn[T any](name string, value func(T) *int64) typed[T] {
	return typed[T]{column[T]{name, func(r T) string { return optional(value(r)) }}, parquetfile.KindWhole, func(r T) parquetfile.Value {
		if n := value(r); n != nil {
			return parquetfile.Whole(*n)
		}
		return parquetfile.Value{}
	}}
}

// numberColumn has numbers with nine significant digits; nil is no value.
func numberColumn[T any](name string, value func(T) *float64) typed[T] {
	return typed[T]{column[T]{name, func(r T) string { return nine(value(r)) }}, parquetfile.KindNumber, func(r T) parquetfile.Value {
		x := value(r)
		if x == nil {
			return parquetfile.Value{}
		}
		if x = report.Rounded(*x); x == nil {
			return parquetfile.Value{}
		}
		return parquetfile.Number(*x)
	}}
}

// secondsColumn has times in seconds; what is not above zero is not known.
func secondsColumn[T any](name string, value func(T) time.Duration) typed[T] {
	return numberColumn(name, func(r T) *float64 {
		if d := value(r); d > 0 {
			return new(d.Seconds())
		}
		return nil
	})
}

func flagColumn[T any](name string, value func(T) bool) typed[T] {
	return typed[T]{column[T]{name, func(r T) string { return strconv.FormatBool(value(r)) }}, parquetfile.KindFlag,
		func(r T) parquetfile.Value { return parquetfile.Flag(value(r)) }}
}

// instantColumn has times of milliseconds; the zero time is no value.
func instantColumn[T any](name string, value func(T) time.Time) typed[T] {
	return typed[T]{column[T]{name, func(r T) string {
		t := value(r)
		if t.IsZero() {
			return ""
		}
		return t.Format("2006-01-02T15:04:05.000Z07:00")
	}}, parquetfile.KindInstant, func(r T) parquetfile.Value { return parquetfile.Instant(value(r).Truncate(time.Millisecond)) }}
}
