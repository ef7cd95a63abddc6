package ingest

import "encoding/json"

// ParseForTest is parse, as the fuzz test calls it.
func ParseForTest(raw []byte, run, node string, seq int64) (json.RawMessage, error) {
	p, err := parse(raw, run, node, seq)
	if err != nil {
		return nil, err
	}
	return p.stored, nil
}
