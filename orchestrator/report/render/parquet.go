package render

import (
	"io"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/parquetfile"
)

var trialsParquetFormat = &Format{Name: "trials-parquet", Title: "Parquet, a row an attempt", File: "trials.parquet", MediaType: parquetfile.MediaType,
	Holds: "the columns and rows of `trials-csv`, with types, for pandas, R, DuckDB or Spark",
	write: func(w io.Writer, v *report.Analysis) error { return writeParquet(w, trialColumns(), attemptRows(v)) }}

var samplesParquetFormat = &Format{Name: "samples-parquet", Title: "Parquet, a row a sample", File: "samples.parquet", MediaType: parquetfile.MediaType, Source: FromRows,
	Holds: "the columns and rows of `samples-csv`, with types; a fifth of its size or less"}

func writeParquet[T any](w io.Writer, columns []typed[T], rows []T) error {
	head, cells := make([]parquetfile.Column, len(columns)), make([]parquetfile.Value, len(columns))
	for i := range columns {
		head[i] = parquetfile.Column{Name: columns[i].name, Kind: columns[i].kind}
	}
	out := parquetfile.NewWriter(w, head...)
	for _, r := range rows {
		for i := range columns {
			cells[i] = columns[i].cell(r)
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	return out.Close()
}
