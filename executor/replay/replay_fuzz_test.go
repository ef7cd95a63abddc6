package replay

import (
	"encoding/json"
	"strings"
	"testing"

	"linktrial/executor/journal"
)

// lines is a journal of one record a line: its type and its body.
type lines string

func (l lines) Records(f func(journal.Record) error) error {
	seq := int64(0)
	for line := range strings.Lines(string(l)) {
		name, body, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		seq++
		if err := f(journal.Record{Seq: seq, Type: journal.Type(name), Body: json.RawMessage(body)}); err != nil {
			return err
		}
	}
	return nil
}

// FuzzJournal: whatever a journal's records say, the next trial is one of the sheet.
func FuzzJournal(f *testing.F) {
	f.Add(`run-started {"sheet_hash":"h","version":"1","trials":3}
provenance {}
listener-ready {"treatment":"tcp","port":5001,"restarts":0}
attempt-started {"trial":0,"attempt":1,"treatment":"tcp","iteration":1}
attempt-ended {"trial":0,"attempt":1,"verdict":"failed","reason":"reset"}
attempt-started {"trial":0,"attempt":2,"treatment":"tcp","iteration":1}
attempt-ended {"trial":0,"attempt":2,"verdict":"succeeded"}
trial-ended {"trial":0,"verdict":"succeeded","attempts":2}
command {"id":"a","kind":"repeat","trial":0}
command {"id":"b","kind":"skip","trial":1}
command {"id":"c","kind":"pause"}
command {"id":"d","kind":"resume"}
run-ended {"end":"completed"}
`)
	f.Add("command {\"id\":\"a\",\"kind\":\"repeat\",\"trial\":99}\n")
	f.Add("command {\"id\":\"a\",\"kind\":\"repeat\",\"trial\":-1}\ntrial-ended {\"trial\":-1}\n")
	f.Add("command {\"kind\":\"skip\"}\n")
	f.Add("attempt-ended []\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Journal(lines(text))
		if err != nil {
			return
		}
		const trials = 3
		for i := range trials {
			s.Trial(i).Verdict()
			s.Trial(i).Over(2)
		}
		for range 2 {
			at, ok := s.Next(trials)
			if !ok {
				break
			}
			if at < 0 || at >= trials {
				t.Fatalf("trial %d of %d is next", at, trials)
			}
			if after, ok := s.After(at, trials); ok && (after < 0 || after >= trials) {
				t.Fatalf("trial %d of %d comes after %d", after, trials, at)
			}
			s.EndTrial(at)
		}
	})
}
