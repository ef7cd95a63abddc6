package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// JSONFormat is the version of the JSON export. Fields may be added within a
// version; a changed meaning or a removed field makes a new one.
const JSONFormat = 1

// document is the JSON export: all there is, and the tables made of it.
type document struct {
	Format  int        `json:"format"`
	Dataset *Dataset   `json:"dataset"`
	Tables  []RunTable `json:"tables"`
}

// JSON is the export of everything.
func (v *Analysis) JSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(document{JSONFormat, v.Dataset, v.Tables}); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// ReadJSON reads the dataset of a JSON export, so that every other format can be
// made of it again. Its tables are not read: they follow from the dataset.
func ReadJSON(b []byte) (*Dataset, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber() // options of treatments keep their digits
	var d struct {
		Format  int      `json:"format"`
		Dataset *Dataset `json:"dataset"`
	}
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("results: more than one document")
	}
	if d.Format != JSONFormat {
		return nil, fmt.Errorf("results: format %d, this Linktrial reads %d", d.Format, JSONFormat)
	}
	if d.Dataset == nil {
		return nil, errors.New("results: no dataset")
	}
	return d.Dataset, nil
}
