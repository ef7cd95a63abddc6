package ingest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"linktrial/executor/journal"
)

// MaxRecordBytes is the longest record that is accepted.
const MaxRecordBytes = 4 << 20

// parsed is one record, checked as far as it can be on its own.
type parsed struct {
	journal.Record
	digest [sha256.Size]byte
	stored json.RawMessage // the body as jsonb can hold it
	body   any             // pointer to the struct that Type names
	raw    []byte          // as delivered
}

// errForeign reports a record that is not of the journal that it is delivered as.
var errForeign = errors.New("it is not of this journal")

// parse reads record seq of a node's journal of a run. The error wraps errForeign
// where the journal is another one; any other concerns this record alone.
func parse(raw []byte, run, node string, seq int64) (*parsed, error) {
	if len(raw) > MaxRecordBytes {
		return nil, fmt.Errorf("%d bytes long, at most %d are accepted", len(raw), MaxRecordBytes)
	}
	p := &parsed{digest: sha256.Sum256(raw), raw: raw}
	if err := json.Unmarshal(raw, &p.Record); err != nil {
		return nil, fmt.Errorf("not a journal record: %w", err)
	}
	switch {
	case p.Seq != seq:
		return nil, fmt.Errorf("%w: its own number is %d", errForeign, p.Seq)
	case p.Run != run:
		return nil, fmt.Errorf("%w: it is of run %.100q", errForeign, p.Run)
	case p.Node != node:
		return nil, fmt.Errorf("%w: it is of node %.100q", errForeign, p.Node)
	case p.At.IsZero():
		return nil, errors.New("it has no time")
	}
	body, err := p.Open()
	if err != nil {
		return nil, err
	}
	p.body = body
	if err := p.checkBounds(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Type, err)
	}
	stored, err := storable(p.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Type, err)
	}
	p.stored = stored
	return p, nil
}

// storable brings JSON into the form that jsonb accepts: PostgreSQL refuses
// the character U+0000, which a driver's log may well hold, halves of surrogate
// pairs and bytes that are not UTF-8. Each becomes U+FFFD.
func storable(body json.RawMessage) (json.RawMessage, error) {
	if utf8.Valid(body) && !bytes.Contains(body, []byte(`\u`)) {
		return body, nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(clean(v))
}

func clean(v any) any {
	switch x := v.(type) {
	case string:
		return text(x)
	case []any:
		for i := range x {
			x[i] = clean(x[i])
		}
	case map[string]any:
		for k, e := range x {
			if c := text(k); c != k {
				delete(x, k)
				k = c
			}
			x[k] = clean(e)
		}
	}
	return v
}

// text is a string as a text column can hold it.
func text(s string) string { return journal.Storable(s) }

// optionalJSON encodes what v points to for a jsonb column; nil is NULL.
func optionalJSON[T any](v *T) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return storable(b)
}
