package client

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// FuzzParseCredentials: every token that is taken can be the header of a call.
func FuzzParseCredentials(f *testing.F) {
	f.Add(`{"orchestrators":{"https://a:8443":{"user":"anna","token":"lt_abcDEF-_0123"}}}`)
	f.Add(`{"orchestrators":{"https://a":{"token":"x\r\nY: z"}}}`)
	f.Add(`{"orchestrators":null}`)
	f.Add(`{}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCredentials(strings.NewReader(text))
		if err != nil {
			if len(c.Orchestrators) > 0 {
				t.Fatal("credentials beside an error")
			}
			return
		}
		for _, one := range c.Orchestrators {
			r, err := http.NewRequest(http.MethodGet, "http://a", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+one.Token)
			var b strings.Builder
			if err := r.Write(&b); err != nil || strings.Count(b.String(), "\n") != 5 {
				t.Fatalf("token %q: %q, %v", one.Token, b.String(), err)
			}
		}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseCredentials(strings.NewReader(string(b)))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%+v was %+v: %v", again, c, err)
		}
	})
}

// A file without end is not read whole.
func TestCredentialsAreBounded(t *testing.T) {
	if _, err := parseCredentials(strings.NewReader(strings.Repeat(" ", maxCredentials+1))); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Fatal(err)
	}
}
