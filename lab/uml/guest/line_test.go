package guest

import (
	"os"
	"testing"
	"time"
)

func TestLine(t *testing.T) {
	for _, l := range []Line{
		{Kind: LineTime, At: 20 * time.Second},
		{Kind: LineBegun, Sheet: 3},
		{Kind: LineEnded, Sheet: 3, At: time.Hour, Text: "the agent\nof the \"client\" ended"},
		{Kind: LineCosts, Sheet: 1, Text: Costs{Emulator: 7, "client": 1}.String()},
		{Kind: LineDone},
		{Kind: LineFailed, Text: "mount /proc: not permitted"},
	} {
		if got, ok := ParseLine(l.String() + "\r\n"); !ok || got != l {
			t.Errorf("%+v became %+v", l, got)
		}
	}
	for _, s := range []string{"", "Kernel panic - not syncing", lineStart, lineStart + "time", lineStart + `dance 1 1 ""`, lineStart + `time -1 0 ""`, lineStart + `time 1 -1 ""`, lineStart + `time 1 0 x`, lineStart + `time 99999999999999999 0 ""`} {
		if l, ok := ParseLine(s); ok {
			t.Errorf("%q is taken for %+v", s, l)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add(Line{Kind: LineEnded, Sheet: 2, At: time.Minute, Text: "no\n"}.String())
	f.Add("Kernel panic")
	f.Fuzz(func(t *testing.T, s string) {
		if l, ok := ParseLine(s); ok {
			if again, ok := ParseLine(l.String()); !ok || again != l {
				t.Errorf("%q: %+v became %+v", s, l, again)
			}
		}
	})
}

func TestMainRefusesOutsideAGuest(t *testing.T) {
	if os.Getpid() == 1 {
		t.Skip("the test is the first process of its machine itself, and would power it off")
	}
	if err := Main(t.Context(), Config{}); err == nil {
		t.Error("it ran outside a guest")
	}
}
