package report_test

import (
	"strings"
	"testing"

	"linktrial/orchestrator/report"
)

func TestReadJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                              "EOF",
		`{"format":3,"dataset":{}}`:     "format 3, this Linktrial reads up to 2",
		`{"format":1}`:                  "no dataset",
		`{"format":1,"dataset":{}} {}`:  "more than one document",
		`{"format":1,"dataset":{}} x`:   "more than one document",
		`{"format":1,"dataset":"text"}`: "cannot unmarshal",
	} {
		if _, err := report.ReadJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
