package journal

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/docpart"
	"linktrial/internal/radio"
)

func TestKinds(t *testing.T) {
	seen := map[Type]bool{}
	for _, k := range Kinds() {
		require.NotEmpty(t, k.Types)
		require.NotEmpty(t, k.Writers, k.Types)
		require.NotEmpty(t, k.Holds, k.Types)
		for _, typ := range k.Types {
			require.False(t, seen[typ], typ)
			seen[typ] = true
			require.Same(t, k, KindOf(typ))
			require.NotEmpty(t, Text(typ, json.RawMessage(`{}`)), typ)
			require.NotPanics(t, func() { _, _ = (&Record{Type: typ, Body: json.RawMessage(`{}`)}).Open() }, typ)
		}
	}
	require.Nil(t, KindOf("refused"), "it is the store's")
}

func TestOpen(t *testing.T) {
	for _, c := range []struct{ typ, body, want string }{
		{"smoke", "{}", `unknown type "smoke"`},
		{"waiting", "", "waiting without a body"},
		{"waiting", "7", "waiting: json: cannot unmarshal number"},
		{"waiting", `{"trial":0}`, "waiting: written by a server, only a client may write it"},
		{"trial-ended", `{"trial":-1,"verdict":"maybe"}`, "trial -1, attempt 1, flow 0"},
		{"telemetry", `{"source":"a","values":[{"name":"x"},{"name":"x"}]}`, `value "x" of source a is given twice`},
	} {
		_, err := (&Record{Type: Type(c.typ), Role: radio.RoleServer, Body: json.RawMessage(c.body)}).Open()
		require.ErrorContains(t, err, c.want)
	}
	body, err := (&Record{Type: TypeWaiting, Role: radio.RoleClient, Body: json.RawMessage(`{"trial":3,"fault":"no carrier"}`)}).Open()
	require.NoError(t, err)
	require.Equal(t, &Waiting{Trial: 3, Fault: "no carrier"}, body)
	require.Equal(t, "trial 3 waits: no carrier", Text(TypeWaiting, json.RawMessage(`{"trial":3,"fault":"no carrier"}`)))
	require.Contains(t, Text(TypeWaiting, json.RawMessage(`7`)), "a record that cannot be read")
}

// docs/data-format.md lists the records. Write it with:
// go test ./executor/journal -run TestDocumentListsRecords -update
func TestDocumentListsRecords(t *testing.T) {
	var rows [][]string
	for _, k := range Kinds() {
		var types []string
		for _, typ := range k.Types {
			types = append(types, "`"+string(typ)+"`")
		}
		rows = append(rows, []string{strings.Join(types, ", "), k.Writers, k.Holds})
	}
	docpart.Hold(t, "docs/data-format.md", "records", docpart.Table([]string{"type", "written by", "body"}, rows))
}

// FuzzOpen: no body of any type breaks who reads it, and what is taken has a sentence.
func FuzzOpen(f *testing.F) {
	for _, k := range Kinds() {
		f.Add(string(k.Types[0]), "client", []byte(`{"trial":1,"attempt":1,"side":"client","verdict":"failed"}`))
	}
	f.Fuzz(func(t *testing.T, typ, role string, body []byte) {
		r := Record{Type: Type(typ), Role: radio.Role(role), Body: body}
		if _, err := r.Open(); err == nil && Text(r.Type, r.Body) == "" {
			t.Errorf("%s has no sentence", typ)
		}
	})
}
