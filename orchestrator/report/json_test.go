package report_test

import (
	"strings"
	"testing"

	"linktrial/orchestrator/report"
)

func TestReadJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                              "EOF",
		`{"format":4,"dataset":{}}`:     "format 4, this Linktrial reads up to 3",
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
