package identity

import (
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	key, err := newKey()
	if err != nil {
		f.Fatal(err)
	}
	b, err := keyPEM(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(nil))
	f.Add(b)
	f.Add(append(b, []byte(strings.Repeat("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", 2))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if i, err := parse(b); err == nil && (i.key == nil || i.cert == nil || i.authority == nil || i.Name() == "") {
			t.Fatal("half an identity")
		}
	})
}
