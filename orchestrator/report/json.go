package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// JSONFormat is the version of the JSON export. Fields may be added within a
// version; a changed meaning or a removed field makes a new one. In version 1, ratio was
// the geometric mean with Student's interval, wilcoxon_… were of the differences, and the
// throughputs of the bounds were by the bounds' own clock.
const JSONFormat = 2

// document is the JSON export: all there is, and the tables made of it.
type document struct {
	Format  int        `json:"format"`
	Dataset *Dataset   `json:"dataset"`
	Tables  []RunTable `json:"tables"`
	// Methods name how each interval and each P of the tables is made, by the field.
	Methods map[string]string `json:"methods"`
}

var methods = map[string]string{
	"failed_share_ci95":               "score interval of Wilson",
	"average_ci95_kb_per_s":           "Student's t, not below 0",
	"average_bootstrap_ci95_kb_per_s": "BCa bootstrap",
	"flow_average_ci95_kb_per_s":      "Student's t, not below 0",
	"delay_mean_ci95_ms":              "Student's t, not below 0",
	"difference_ci95_kb_per_s":        "inverts Student's test for pairs",
	"difference_t_p":                  "Student's test for pairs of the differences, two-sided",
	"ratio_ci95":                      "inverts Wilcoxon's signed-rank test; around the estimate of Hodges and Lehmann",
	"wilcoxon_p":                      "Wilcoxon's signed-rank test of the logarithms of the ratios, two-sided",
	"wilcoxon_p_holm":                 "wilcoxon_p, corrected after Holm for the comparisons of the run",
	"gain_ci95_percent":               "delta method with Student's t",
}

// JSON is the export of everything.
func (v *Analysis) JSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(document{JSONFormat, v.Dataset, v.Tables, methods}); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// ReadJSON reads the dataset of a JSON export, so that every other format can be
// made of it again. Its tables are not read: they follow from the dataset, which is the
// same in all versions.
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
	if d.Format < 1 || d.Format > JSONFormat {
		return nil, fmt.Errorf("results: format %d, this Linktrial reads up to %d", d.Format, JSONFormat)
	}
	if d.Dataset == nil {
		return nil, errors.New("results: no dataset")
	}
	return d.Dataset, nil
}
