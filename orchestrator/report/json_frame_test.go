package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"linktrial/executor/runsheet"
)

// The export is written run by run, and has the bytes of an encoder that has it whole.
func TestWriteJSON(t *testing.T) {
	const text = "a\n  \"runs\": null\n \"tables\": null <&>"
	run := Run{ID: "r-1", Message: text, Sheet: &runsheet.Sheet{Plan: text}, Trials: []Trial{{Attempts: []Attempt{{Message: text}}}, {Attempts: []Attempt{}}}}
	for name, a := range map[string]*Analysis{
		"nothing":   {Dataset: &Dataset{}, Tables: []RunTable{}},
		"no runs":   {Dataset: &Dataset{Runs: []Run{}, Notes: []string{text}}, Tables: []RunTable{}},
		"one run":   {Dataset: &Dataset{Plan: text, Runs: []Run{run}, Complete: true, Notes: []string{text}}, Tables: []RunTable{{}}},
		"some runs": {Dataset: &Dataset{Runs: []Run{run, {}, run}}, Tables: []RunTable{{}, {}, {}}},
	} {
		var want, got bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		whole := *a.Dataset
		whole.Runs = append([]Run{}, withLists(a.Dataset.Runs)...)
		if err := enc.Encode(document{JSONFormat, &whole, a.Tables, methods, HoldRuns(a)}); err != nil {
			t.Fatal(err)
		}
		if err := a.WriteJSON(&got); err != nil || got.String() != want.String() {
			t.Errorf("%s: %v\n%s\nexpected\n%s", name, err, &got, &want)
		}
	}
}

var errFull = errors.New("no space left")

// full takes so many bytes.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteJSONEndsWithItsWriter(t *testing.T) {
	a := &Analysis{Dataset: &Dataset{Runs: make([]Run, 3)}, Tables: make([]RunTable, 3)}
	var all bytes.Buffer
	if err := a.WriteJSON(&all); err != nil {
		t.Fatal(err)
	}
	for n := range all.Len() {
		if err := a.WriteJSON(&full{n}); !errors.Is(err, errFull) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	if err := a.WriteJSON(&full{all.Len()}); err != nil {
		t.Fatal(err)
	}
}
