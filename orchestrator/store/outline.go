package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/store/dbsqlc"
)

// Outline is what a list of campaigns shows of a sheet.
type Outline struct {
	Treatments []string // labels; mixes among them
	Swept      bool     // a sweep has set parameters of it
}

// outlineBytes is how much of a sheet is read for its outline; the longest of
// the plans at hand has its trials after a tenth of it.
const outlineBytes = 128 << 10

// Outlines are the outlines of runs' sheets, by the sheets' hashes. Only the
// beginning of sheets that are not known yet is read: trials come last.
func (s *Store) Outlines(ctx context.Context, q *dbsqlc.Queries, runs []dbsqlc.RunHeadsRow) (map[string]*Outline, error) {
	out := map[string]*Outline{}
	var wanted []string
	for _, r := range runs {
		if _, asked := out[r.SheetHash]; asked {
			continue
		}
		o, ok := s.outlines.Get(r.SheetHash)
		if !ok {
			wanted = append(wanted, r.ID)
		}
		out[r.SheetHash] = o
	}
	if len(wanted) == 0 {
		return out, nil
	}
	rows, err := q.SheetBeginnings(ctx, dbsqlc.SheetBeginningsParams{Runs: wanted, Bytes: outlineBytes})
	if err != nil {
		return nil, fmt.Errorf("outlines of sheets: %w", err)
	}
	for _, r := range rows {
		o, err := outlineOf(r.Beginning)
		if err != nil {
			// Its beginning is longer than others' or it is of another version.
			encoded, err := q.RunSheet(ctx, r.ID)
			if err != nil {
				return nil, fmt.Errorf("sheet of run %s: %w", r.ID, err)
			}
			if o, err = outlineOf(encoded); err != nil {
				return nil, fmt.Errorf("sheet of run %s: %w", r.ID, err)
			}
		}
		out[r.SheetHash] = o
		s.outlines.Add(r.SheetHash, o)
	}
	return out, nil
}

// outlineOf reads the beginning of an encoded sheet, up to its trials.
func outlineOf(sheet []byte) (*Outline, error) {
	dec := json.NewDecoder(bytes.NewReader(sheet))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("expected a run sheet, found %v (%w)", t, err)
	}
	var s runsheet.Sheet
	fields := map[string]any{"cell": &s.Cell, "treatments": &s.Treatments, "mixes": &s.Mixes}
	var skipped json.RawMessage
	for {
		t, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("run sheet: %w", err)
		}
		if t == json.Delim('}') || t == "trials" {
			break
		}
		into := any(&skipped)
		if f := fields[fmt.Sprint(t)]; f != nil {
			into = f
		}
		if err := dec.Decode(into); err != nil {
			return nil, fmt.Errorf("run sheet: %v: %w", t, err)
		}
	}
	o := &Outline{Swept: len(s.Cell.Settings) > 0}
	for _, t := range s.Treatments {
		o.Treatments = append(o.Treatments, t.Label)
	}
	for _, m := range s.Mixes {
		o.Treatments = append(o.Treatments, m.Label)
	}
	return o, nil
}
