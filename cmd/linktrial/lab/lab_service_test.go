package lab

import (
	"log/slog"
	"strings"
	"testing"

	"linktrial/cmd/linktrial/setting"
	"linktrial/orchestrator/catalog"
)

// A lab whose agents would trust no key is not brought up: Up fails before it checks
// even the name of the lab.
func TestLabWithoutSigningKeys(t *testing.T) {
	s := setting.Settings{Orchestrator: "http://127.0.0.1:1", Data: t.TempDir()}
	cat, err := catalog.Load(catalog.Config{DriversDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	l := &Served{s: s, cat: cat, name: "No name of a lab", log: slog.New(slog.DiscardHandler)}
	err = l.Up(t.Context(), "prc-117g-anw2c", "vip-lot")
	if err == nil || !strings.Contains(err.Error(), "signing keys: ") {
		t.Fatalf("%v, expected a word of the signing keys", err)
	}
	if st, err := l.Status(t.Context()); err != nil || st.Up {
		t.Fatalf("%v, %v", st, err)
	}
}
