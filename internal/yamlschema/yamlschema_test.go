package yamlschema_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/yamldoc"
	"linktrial/internal/yamlschema"
)

var inner = &yamlschema.Mapping{Name: "inner part", Keys: []yamlschema.Key{
	{Name: "on", Form: yamlschema.Flag(), Default: true, Meaning: "Whether.", Example: "false"},
}}

var place = yamlschema.Of(placeKeys)

var placeKeys = &yamlschema.Mapping{Name: "place", Inline: true, Keys: []yamlschema.Key{
	{Name: "at", Form: yamlschema.List(yamlschema.Integer(0, 9), 2, 2), Meaning: "Coordinates.", Example: "[1, 2]"},
	{Name: "parts", Form: yamlschema.List(yamlschema.Of(inner), 0, 0), Meaning: "Parts.", Example: "[]"},
}}

var document = &yamlschema.Document{Name: "sample", Title: "Sample", Meaning: "A sample.", Root: &yamlschema.Mapping{Name: "the sample", Keys: []yamlschema.Key{
	{Name: "wait", Form: yamlschema.Duration(time.Second, time.Hour), Default: 5 * time.Minute, Meaning: "How `long`.", Example: "10s", InTemplate: true},
	{Name: "count", Form: yamlschema.Integer(1, 10), Required: true, Meaning: "How many.", Example: "3", InTemplate: true},
	{Name: "seed", Form: yamlschema.Integer(0, math.MaxUint64), Unset: "drawn", Meaning: "Of what is random.", Example: "1"},
	{Name: "word", Form: yamlschema.Word("a", "b", "c"), Default: "b", Meaning: "Which.", Example: "a"},
	{Name: "size", Form: yamlschema.OneOrMany(yamlschema.Size(1, 1<<20), 4), Unset: "none", Meaning: "How much.", Example: "1 KiB"},
	{Name: "parts", Form: yamlschema.List(yamlschema.Of(inner), 1, 3), Unset: "none", Meaning: "Parts.", Example: "[{on: true}]"},
	{Name: "share", Form: yamlschema.Number(1e-9, 1), Default: 0.5, Meaning: "Which part.", Example: "0.1"},
	{Name: "rate", Form: yamlschema.Rate(1, 1e6), Unset: "none", Meaning: "How fast.", Example: "16 kbit/s"},
	{Name: "height", Form: yamlschema.Distance(-500, 9000), Unset: "none", Meaning: "How high.", Example: "-12 m"},
	{Name: "code", Form: yamlschema.Matching("two digits", "^[0-9]{2}$"), Unset: "none", Meaning: "A code.", Example: "\"12\""},
	{Name: "places", Form: yamlschema.Of(&yamlschema.Mapping{Name: "places", Free: &place}), Unset: "none", Meaning: "Where.", Example: "{here: {at: [1, 2]}}"},
	{Name: "options", Form: yamlschema.Of(&yamlschema.Mapping{Name: "options", Free: &yamlschema.Form{Type: yamlschema.TypeAny}}), Unset: "none", Meaning: "Any.", Example: "{x: 1}"},
}}}

type got struct {
	wait  time.Duration
	count int
	word  string
}

// read reads a sample, and what is wrong with it.
func read(text string) (got, string) {
	d := yamldoc.Parse("s.yaml", []byte(text))
	f := document.Root.Read(d.Root())
	g := got{f.Duration("wait"), f.Int("count"), f.Word("word")}
	if s, of := f.Value("share"); s.Present() && f.Number("share") != s.Float(0, of.Form.Lo, of.Form.Hi) || !s.Present() && f.Number("share") != 0.5 {
		return g, "share"
	}
	for _, p := range f.Field("parts").List() {
		inner.Read(p).Bool("on")
	}
	document.Root.Key("options").Form.Mapping.Read(f.Field("options"))
	if err := d.Err(); err != nil {
		return g, err.Error()
	}
	return g, ""
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		text string
		want got
		err  string
	}{
		{"count: 2", got{5 * time.Minute, 2, "b"}, ""},
		{"{count: 10, wait: 1s, word: c, parts: [{on: false}], options: {anything: here}}", got{time.Second, 10, "c"}, ""},
		{"word: a", got{5 * time.Minute, 1, "a"}, "s.yaml:1:1: count is missing"},
		{"{count: 11}", got{5 * time.Minute, 1, "b"}, `s.yaml:1:9: count: expected a whole number from 1 to 10, found "11"`},
		{"{count: 1, wait: 1ms}", got{5 * time.Minute, 1, "b"}, "s.yaml:1:18: wait: expected 1s to 1h0m0s, found 1ms"},
		{"{count: 1, wait: soon}", got{5 * time.Minute, 1, "b"}, `s.yaml:1:18: wait: expected a duration such as "100ms" or "2m30s", found "soon"`},
		{"{count: 1, wort: a}", got{5 * time.Minute, 1, "b"}, `s.yaml:1:12: unknown key "wort" (did you mean "word"?); there are wait, count, seed, word, size, parts, share, rate, height, code, places, options`},
		{"{count: 1, parts: [{off: true}]}", got{5 * time.Minute, 1, "b"}, `s.yaml:1:21: unknown key "off"; there are on`},
	} {
		g, err := read(c.text)
		require.Equal(t, c.want, g, c.text)
		require.Equal(t, c.err, err, c.text)
	}
}

func TestUndeclared(t *testing.T) {
	f := document.Root.Read(yamldoc.Parse("s.yaml", []byte("count: 1")).Root())
	require.Panics(t, func() { f.Int("number") })
	require.Panics(t, func() { f.Int("wait") })
	require.Panics(t, func() { f.Value("number") })
}

func TestJSONSchema(t *testing.T) {
	s := document.JSONSchema()
	b, err := json.Marshal(s)
	require.NoError(t, err)
	require.Contains(t, string(b), `"$schema":"https://json-schema.org/draft/2020-12/schema"`)
	require.Contains(t, string(b), `"wait":{"type":["string","integer"],"description":"How `+"`long`"+`.","default":"5m","examples":["10s"]`)
	require.Contains(t, string(b), `"$defs":{"inner-part":`)
	r, err := s.Resolve(nil)
	require.NoError(t, err)
	for text, right := range map[string]bool{
		`{"count": 2, "wait": "1m 30s", "seed": 9007199254740993, "size": ["1 KiB", 3], "options": {"x": [1]}}`:             true,
		`{"count": 2, "share": 0.1, "rate": "16 kbit/s", "height": "-12 m", "code": "12", "places": {"x": {"at": [1, 2]}}}`: true,
		`{"count": 2, "share": 0}`:                   false,
		`{"count": 2, "rate": "16 kB/s"}`:            false,
		`{"count": 2, "height": "--1 m"}`:            false,
		`{"count": 2, "code": "123"}`:                false,
		`{"count": 2, "places": {"x": {"at": [1]}}}`: false,
		`{"wait": "1m"}`:                             false,
		`{"count": 0}`:                               false,
		`{"count": 2, "wait": "1 d"}`:                false,
		`{"count": 2, "word": "d"}`:                  false,
		`{"count": 2, "size": "1 kg"}`:               false,
		`{"count": 2, "parts": []}`:                  false,
		`{"count": 2, "parts": [{"o": 1}]}`:          false,
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		require.Equal(t, right, r.Validate(v) == nil, text)
	}
}

func TestTemplate(t *testing.T) {
	require.Equal(t, `# A new sample.

# How long.
# (duration, 1s to 1h; without it: 5m)
wait: 10s

# How many.
# (whole number, 1 to 10; required)
count: 4

# Of what is random.
# (whole number, 0 to 2^64-1; without it: drawn)
# seed: 1

# Which.
# (a, b or c; without it: b)
# word: a

# How much.
# (size, 1 B to 1 MiB; or a list of at most 4; without it: none)
# size: 1 KiB

# Parts.
# (list of at most 3: mapping (inner part); without it: none)
# parts: [{on: true}]

# Which part.
# (number, 1e-09 to 1; without it: 0.5)
# share: 0.1

# How fast.
# (rate, 1 bit/s to 1 Mbit/s; without it: none)
# rate: 16 kbit/s

# How high.
# (height, -500 m to 9 km; without it: none)
# height: -12 m

# A code.
# (two digits; without it: none)
# code: "12"

# Where.
# (mapping of places: at: list of 2: whole number, 0 to 9; parts: list: mapping (inner
# part); without it: none)
# places: {here: {at: [1, 2]}}

# Any.
# (mapping of options; without it: none)
# options: {x: 1}
`, document.Template("A new sample.", map[string]string{"count": "4"}))
}

func TestRows(t *testing.T) {
	rows := document.Root.Rows(func(name string) string { return "<" + name + ">" })
	require.Equal(t, []string{"`count`", "whole number, 1 to 10", "**required**", "How many.", "`3`"}, rows[1])
	require.Equal(t, []string{"`word`", "`a`, `b` or `c`", "b", "Which.", "`a`"}, rows[3])
	require.Equal(t, "list of at most 3: <inner part>", rows[5][1])
	require.Equal(t, []*yamlschema.Mapping{document.Root, inner}, document.Mappings())
}
