package contract

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const someDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

var goodEvents = []string{
	`{"event":"ready","info":{"implementation":"linux-kernel","choices":{"congestion":["reno"]}}}`,
	`{"event":"connected","transfer":"` + vectorID + `","connect_ns":5}`,
	`{"event":"connected","transfer":"` + vectorID + `"}`,
	`{"event":"sample","transfer":"` + vectorID + `","sample":{"elapsed_ns":1,"sent_bytes":2,"acked_bytes":0,"pacing_bps":1.5,"more":{"x":1}}}`,
	`{"event":"result","transfer":"` + vectorID + `","result":{"size_bytes":0,"elapsed_ns":1,"digest":"` + someDigest + `","final":{"elapsed_ns":1,"sent_bytes":0}}}`,
	`{"event":"result","transfer":"` + vectorID + `","result":{"size_bytes":0,"elapsed_ns":1,"digest":"` + someDigest + `","paths":[{"address":"10.77.0.1","bytes":3,"share":0.75},{"address":"10.78.0.1","bytes":1,"share":0.25}]}}`,
	`{"event":"error","code":"reset","message":"gone"}`,
	`{"event":"error","transfer":"` + vectorID + `","code":"corrupted"}`,
	`{"event":"ready","info":{"implementation":"x"},"news":"a field of a later version is passed over"}`,
}

func TestParseEvent(t *testing.T) {
	for _, s := range goodEvents {
		if _, err := ParseEvent([]byte(s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for s, want := range map[string]string{
		``:                                 "not an event",
		`hello`:                            "not an event",
		`null`:                             "unknown event",
		`{}`:                               "unknown event",
		`{"event":"sampled"}`:              "unknown event",
		`{"event":"ready"}`:                "info.implementation",
		`{"event":"ready","info":{}}`:      "info.implementation",
		`{"event":"connected"}`:            "without transfer",
		`{"event":"error","code":"oops"}`:  "unknown code",
		`{"event":"error"}`:                "unknown code",
		`{"event":"error"} {}`:             "not an event",
		`{"event":"ready","transfer":"1"}`: "transfer id",
		`{"event":"connected","transfer":"` + vectorID + `","connect_ns":-1}`: "connect_ns",
		`{"event":"sample","transfer":"` + vectorID + `"}`:                    "without sample",
		`{"event":"result","transfer":"` + vectorID + `","result":{"digest":"` + someDigest + `","paths":[{"bytes":3,"share":0.5},{"bytes":1,"share":0.5}]}}`: "paths[0] of share 0.5, expected 0.75",
		`{"event":"result","transfer":"` + vectorID + `","result":{"digest":"` + someDigest + `","paths":[{"bytes":-1,"share":0}]}}`:                          "paths[0] of -1 bytes",
		`{"event":"sample","sample":{}}`:                                                                                                                       "without sample or transfer",
		`{"event":"sample","transfer":"` + vectorID + `","sample":{"elapsed_ns":-1}}`:                                                                          "negative elapsed_ns",
		`{"event":"sample","transfer":"` + vectorID + `","sample":{"timeouts":-1}}`:                                                                            "negative timeouts",
		`{"event":"sample","transfer":"` + vectorID + `","sample":{"pacing_bps":-1}}`:                                                                          "pacing_bps -1",
		`{"event":"sample","transfer":"` + vectorID + `","sample":{"elapsed_ns":1.5}}`:                                                                         "not an event",
		`{"event":"result","transfer":"` + vectorID + `"}`:                                                                                                     "without result",
		`{"event":"result","transfer":"` + vectorID + `","result":{"size_bytes":-1,"digest":"` + someDigest + `"}}`:                                            "negative value",
		`{"event":"result","transfer":"` + vectorID + `","result":{"digest":"` + someDigest + `","final":{"sent_bytes":-1}}}`:                                  "negative",
		`{"event":"result","transfer":"` + vectorID + `","result":{"digest":"` + someDigest + `","elapsed_ns":9223372036854775808}}`:                           "not an event",
		`{"event":"error","code":"reset","message":"` + strings.Repeat("x", MaxLine) + `"}`:                                                                    "longer than",
		`{"event":"result","transfer":"` + vectorID + `","result":{"size_bytes":1,"elapsed_ns":1,"connect_ns":-5,"digest":"` + someDigest + `","final":null}}`: "negative value",
	} {
		if e, err := ParseEvent([]byte(s)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %+v, %v, expected an error with %q", s, e, err, want)
		}
	}
	if _, err := ParseEvent(make([]byte, MaxLine+1)); !errors.Is(err, ErrLineTooLong) {
		t.Errorf("a long line: %v", err)
	}
}

// FuzzParseEvent: what is taken can be written and is taken again.
func FuzzParseEvent(f *testing.F) {
	for _, s := range goodEvents {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"event":"sample","sample":{"elapsed_ns":1e3}}`))
	f.Add([]byte(probeResult))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEvent(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if _, err := ParseEvent(again); err != nil && !errors.Is(err, ErrLineTooLong) {
			t.Fatalf("%s, written as %s: %v", b, again, err)
		}
	})
}
