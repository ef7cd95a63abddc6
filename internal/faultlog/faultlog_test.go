package faultlog

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var began = time.Date(2026, 11, 23, 1, 2, 3, 456789, time.UTC)

func TestAppendAndRead(t *testing.T) {
	first := Fault{Number: 1, Kind: Kill, Target: Agent, Node: "server", From: began, Touches: true, Detail: "process 4711"}
	second := Fault{Number: 2, Kind: Stop, Target: Orchestrator, From: began.Add(time.Second), To: began.Add(2 * time.Second)}
	var b bytes.Buffer
	require.NoError(t, Append(&b, first))
	require.NoError(t, Append(&b, second))
	first.To = began.Add(3 * time.Second)
	require.NoError(t, Append(&b, first))
	whole := b.String()

	got, err := Read(strings.NewReader(whole))
	require.NoError(t, err)
	require.Equal(t, []Fault{first, second}, got)

	// A crash cuts the last line: the fault has not ended.
	got, err = Read(strings.NewReader(whole[:len(whole)-1]))
	require.NoError(t, err)
	first.To = time.Time{}
	require.Equal(t, []Fault{first, second}, got)
}

func TestAppendRefuses(t *testing.T) {
	var b bytes.Buffer
	require.EqualError(t, Append(&b, Fault{Number: 3, Kind: Kill, Target: "agents", From: began}),
		`fault 3: target "agents", expected one of agent, driver, emulator, orchestrator, database, node, control-link, radio, disk, clock, path, listener`)
	require.Empty(t, b.String())
}

func TestReadNamesTheLine(t *testing.T) {
	good := `{"number":1,"kind":"kill","target":"agent","from":"2026-11-23T01:02:03Z","touches":true}` + "\n"
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":  {`{"number":2,"colour":"red"}` + "\n", `line 2: expected one fault as a JSON object: json: unknown field "colour"`},
		"empty line":   {"\n", `line 2: expected one fault as a JSON object: it is empty`},
		"two":          {strings.TrimSpace(good) + good, `line 2: expected one fault as a JSON object, found more after it`},
		"number":       {strings.Replace(good, ":1,", ":0,", 1), `line 2: number 0, expected 1 to 100000`},
		"gap":          {strings.Replace(good, ":1,", ":3,", 1), `line 2: number 3 follows 1: faults between them are missing`},
		"node":         {strings.Replace(good, `"touches"`, `"node":"boat","touches"`, 1), `line 2: node "boat", expected one of client, relay, server, or none`},
		"no time":      {strings.Replace(good, `"from":"2026-11-23T01:02:03Z",`, "", 1), `line 2: from is missing, expected the time of the injection`},
		"ends earlier": {strings.Replace(good, `"touches"`, `"to":"2026-11-23T01:02:02Z","touches"`, 1), `line 2: to 2026-11-23T01:02:02Z is before from 2026-11-23T01:02:03Z`},
		"long line":    {strings.Repeat(" ", MaxLine) + good, `line 2 is longer than 16 KiB, expected one fault`},
		"long detail": {strings.Replace(good, `"touches"`, `"detail":"`+strings.Repeat("x", maxText+1)+`","touches"`, 1),
			`line 2: detail of 4097 and error of 0 bytes, expected at most 4096 bytes each`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(good + c.text))
			require.EqualError(t, err, c.want)
		})
	}
}

// What Read takes, Append writes back to the same faults.
func FuzzRead(f *testing.F) {
	f.Add(`{"number":1,"kind":"kill","target":"agent","from":"2026-11-23T01:02:03Z","touches":true}` + "\n")
	f.Add(`{"number":1,"kind":"mtu","target":"radio","node":"relay","from":"2026-11-23T01:02:03.5+02:00","to":"2026-11-23T01:02:03.5Z","touches":false,"error":"no"}` + "\n{")
	f.Fuzz(func(t *testing.T, text string) {
		faults, err := Read(strings.NewReader(text))
		if err != nil {
			require.NotContains(t, err.Error(), "\n", "one clear error")
			return
		}
		var b bytes.Buffer
		for _, v := range faults {
			require.NoError(t, Append(&b, v))
		}
		again, err := Read(&b)
		require.NoError(t, err)
		require.Len(t, again, len(faults))
		for i := range faults {
			require.True(t, again[i].From.Equal(faults[i].From) && again[i].To.Equal(faults[i].To))
			again[i].From, again[i].To = faults[i].From, faults[i].To
			require.Equal(t, faults[i], again[i])
		}
	})
}
