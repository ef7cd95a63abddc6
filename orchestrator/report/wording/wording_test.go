package wording

import (
	"strings"
	"testing"
)

func TestDeviation(t *testing.T) {
	for x, want := range map[float64]string{0: "0.0 %", 0.04: "0.0 %", 12.34: "+12.3 %", -3: "-3.0 %", 10: "+10.0 %"} {
		if got := Deviation(&x); got != want {
			t.Errorf("%v: got %s, want %s", x, got, want)
		}
	}
}

func TestCleanText(t *testing.T) {
	if got := Clean(" a\x1b[31mb\r\n c\u202ed\xff\t "); got != "a [31mb cd\uFFFD" {
		t.Errorf("got %q", got)
	}
	if got := ClipMiddle("abcdefghij", 5); got != "ab…ij" {
		t.Errorf("got %q", got)
	}
	if got := Clip("grüße", 4); got != "grü…" {
		t.Errorf("got %q", got)
	}
	if got := Clip(strings.Repeat("x", 4), 4); got != "xxxx" {
		t.Errorf("got %q", got)
	}
}

func TestChange(t *testing.T) {
	for ratio, want := range map[float64]string{1.2149: "+21 %", 0.962: "−3.8 %", 1.004: "+0.4 %", 1.0002: "0.0 %", 0.9999: "0.0 %", 1.0994: "+9.9 %", 1.0998: "+10 %", 0.5: "−50 %", 3: "+200 %"} {
		if got := Change(ratio); got != want {
			t.Errorf("%v: %q, want %q", ratio, got, want)
		}
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{"of 3 treatments": "Of 3 treatments", "newRTO leads": "newRTO leads", "tcp2 leads": "tcp2 leads", "SCTP leads": "SCTP leads", "": ""} {
		if got := Sentence(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
