package wording

import (
	"strings"
	"testing"
)

func TestFigures(t *testing.T) {
	for x, want := range map[float64]string{0: "0.00", -0.001: "0.00", 999.994: "999.99", 999.999: "1000.0", 12345: "12345", -20.5: "-20.50"} {
		if got := KBps(&x); got != want {
			t.Errorf("%v: got %s, want %s", x, got, want)
		}
	}
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
