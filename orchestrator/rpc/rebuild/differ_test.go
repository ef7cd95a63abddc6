package rebuild

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDiffersInLine(t *testing.T) {
	long := strings.Repeat("a", 100)
	for name, c := range map[string][3]string{
		"same":             {"a,b\r\nc\r\n", "a,b\r\nc\r\n", ""},
		"a cell":           {"run,value\r\nx-1,1.25,7\r\n", "run,value\r\nx-1,1.5,7\r\n", "line 2, which begins with “x-1,1.”, from byte 5 on: the bag has “1.25,7”, and from the journals follows “1.5,7”"},
		"the first cell":   {"a\nb,c\n", "a\nd,c\n", "line 2: the bag has “b,c”, and from the journals follows “d,c”"},
		"a row less":       {"a\nb\n", "a\n", "line 2: the bag has “b”, and from the journals follows nothing more"},
		"a row more":       {"a\n", "a\nb\n", "line 2: the bag has nothing more, and from the journals follows “b”"},
		"a shorter cell":   {"a,1\n", "a,12\n", "line 1, which begins with “a,1”, from byte 3 on: the bag has “1”, and from the journals follows “12”"},
		"no newline":       {"a,", "a,\n", "line 1, which begins with “a,”, from byte 3 on: the bag has nothing more, and from the journals follows the end of the line"},
		"long":             {long + "x" + long, long + "y", "line 1, which begins with “" + long[:headShown] + "”, from byte 62 on: the bag has “" + long[:39] + "x" + long[:20] + "…”, and from the journals follows “" + long[:39] + "y”"},
		"no text":          {"\x00\xff\n", "\x00\xfe\n", "line 1: the bag has “\uFFFD\uFFFD”, and from the journals follows “\uFFFD\uFFFD”"},
		"nothing, a file":  {"", "a\n", "line 1: the bag has nothing more, and from the journals follows “a”"},
		"words of a table": {"| TCP | 12.5 |\n", "| TCP | 12.6 |\n", "line 1, which begins with “| TCP | 12.”, from byte 9 on: the bag has “12.5 |”, and from the journals follows “12.6 |”"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := differsInLine(strings.NewReader(c[0]), strings.NewReader(c[1]))
			require.NoError(t, err)
			require.Equal(t, c[2], got)
		})
	}
}

func TestDiffersInJSON(t *testing.T) {
	for name, c := range map[string][3]string{
		"same":           {`{"a": [1, {"b": null}]}`, `{"a":[1,{"b":null}]}`, ""},
		"a number":       {`{"a": [1, {"b": 2, "c": 3.50}]}`, `{"a": [1, {"b": 2, "c": 3.5}]}`, "a[1].c is 3.50 in the bag, and 3.5 follows from the journals"},
		"a text":         {`{"a": {"b": "x"}, "c": "y"}`, `{"a": {"b": "x"}, "c": "z"}`, "c is “y” in the bag, and “z” follows from the journals"},
		"after a list":   {`{"a": [[1, 2], [3]], "b": true}`, `{"a": [[1, 2], [3]], "b": false}`, "b is true in the bag, and false follows from the journals"},
		"in a list":      {`[[1, 2], [3, 4]]`, `[[1, 2], [3, 5]]`, "[1][1] is 4 in the bag, and 5 follows from the journals"},
		"a longer list":  {`{"a": [1]}`, `{"a": [1, 2]}`, "a[1] is at its end in the bag, and 2 follows from the journals"},
		"a key":          {`{"a": {"b": 1}}`, `{"a": {"c": 1}}`, "a: in the bag the key “b” follows, and in what follows from the journals the key “c”"},
		"a key less":     {`{"a": {"b": 1}}`, `{"a": {}}`, "a: in the bag the key “b” follows, and in what follows from the journals its end"},
		"another kind":   {`{"a": {}}`, `{"a": []}`, "a is an object in the bag, and a list follows from the journals"},
		"nothing":        {`{"a": null}`, `{"a": 0}`, "a is no value in the bag, and 0 follows from the journals"},
		"all of it":      {`1`, `2`, "the document is 1 in the bag, and 2 follows from the journals"},
		"no document":    {`{"a": }`, `{"a": 1}`, ""},
		"too many ends":  {`]`, `]`, ""},
		"keys as values": {`{"a": "b", "b": ["a", "b"]}`, `{"a": "b", "b": ["a", "c"]}`, "b[1] is “b” in the bag, and “c” follows from the journals"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c[2], differsInJSON(strings.NewReader(c[0]), strings.NewReader(c[1])))
		})
	}
}

// FuzzDiffers: what is equal differs nowhere, and what is not does so in one line of text.
func FuzzDiffers(f *testing.F) {
	f.Add(`{"a": [1, {"b": 2}]}`, `{"a": [1, {"b": 3}]}`)
	f.Add("a,b\r\n1,2\r\n", "a,b\r\n1,3\r\n")
	f.Add("[", "]")
	f.Fuzz(func(t *testing.T, a, b string) {
		got, err := differsInLine(strings.NewReader(a), strings.NewReader(b))
		require.NoError(t, err)
		require.Equal(t, a == b, got == "")
		require.Empty(t, differsInJSON(strings.NewReader(a), strings.NewReader(a)))
		var x, y any
		if json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && a == b {
			require.Empty(t, differsInJSON(strings.NewReader(a), strings.NewReader(b)))
		}
	})
}
