package contract

import (
	"fmt"
	"math"
	"reflect"
	"strings"
)

// MetricKind is how a metric of a sample behaves from one sample to the next.
type MetricKind string

const (
	Cumulative MetricKind = "cumulative" // grows from the transfer's start on and never goes back
	Counter    MetricKind = "counter"    // events since the connection began, as the protocol counts them
	Gauge      MetricKind = "gauge"      // a value of the moment
)

// Metric describes one field of [Sample]: a row of [Metrics].
type Metric struct {
	Name     string // in JSON, in the database's table of samples, in samples.csv and in the API
	Unit     string // "ns", "B", "µs", "bit/s"; "count" where it counts events
	Kind     MetricKind
	Meaning  string
	Required bool // every sample has it; of the others, absent is not zero
	Real     bool // a float64; else an int64

	field int // of Sample
}

// Metrics is the table of what a sample carries, in the order of the fields of
// [Sample], from whose tags it is made. Checks, the database, the exports, the
// API and the documents' tables follow it. It must not be changed.
var Metrics = metricsOf(reflect.TypeFor[Sample]())

// ElapsedNS is the sample's time, the one metric that the others are drawn over.
const ElapsedNS = "elapsed_ns"

func metricsOf(t reflect.Type) []Metric {
	var out []Metric
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("kind") == "" {
			continue // more: what only one protocol has
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		value := f.Type
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		out = append(out, Metric{
			Name: name, Unit: f.Tag.Get("unit"), Kind: MetricKind(f.Tag.Get("kind")), Meaning: f.Tag.Get("meaning"),
			Required: f.Type.Kind() != reflect.Pointer, Real: value.Kind() == reflect.Float64, field: i,
		})
	}
	return out
}

// Field returns a pointer to the metric's field of s, for a decoder to write
// to: *int64 of a required metric, else **int64, or **float64 where Real.
func (f *Metric) Field(s *Sample) any {
	return reflect.ValueOf(s).Elem().Field(f.field).Addr().Interface()
}

// Whole returns the value in s of a metric that is not Real; nil where absent.
func (f *Metric) Whole(s *Sample) *int64 {
	switch p := f.Field(s).(type) {
	case *int64:
		return p
	case **int64:
		return *p
	}
	return nil
}

// Float returns the value in s of a metric that is Real; nil where absent.
func (f *Metric) Float(s *Sample) *float64 {
	if p, ok := f.Field(s).(**float64); ok {
		return *p
	}
	return nil
}

// Value returns the value in s of any metric; NaN where absent.
func (f *Metric) Value(s *Sample) float64 {
	if x := f.Float(s); x != nil {
		return *x
	}
	if n := f.Whole(s); n != nil {
		return float64(*n)
	}
	return math.NaN()
}

// check refuses values that are negative or infinite.
func (s *Sample) check() error {
	for i := range Metrics {
		f := &Metrics[i]
		if n := f.Whole(s); n != nil && *n < 0 {
			return fmt.Errorf("sample with negative %s (%d)", f.Name, *n)
		}
		if x := f.Float(s); x != nil && (*x < 0 || math.IsInf(*x, 0)) {
			return fmt.Errorf("sample with %s %g, expected a finite number of 0 or more", f.Name, *x)
		}
	}
	return nil
}
