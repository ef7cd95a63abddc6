package wording

import "testing"

// No cell that is no number begins as a formula does, and each text can be read back.
func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "TCP CUBIC": "TCP CUBIC", "-12.5": "-12.5", "+3": "+3", "-1e-9": "-1e-9", "3-4": "3-4", "'quoted'": "'quoted'",
		"=1+1": "'=1+1", `=HYPERLINK("http://x","y")`: `'=HYPERLINK("http://x","y")`, "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0",
		"-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "'=1": "''=1", "''@x": "'''@x", "-": "'-", "'-5": "''-5",
	} {
		cell := Cell(text)
		if cell != want {
			t.Errorf("Cell(%q) = %q, expected %q", text, cell, want)
		}
		if back := Text(cell); back != text {
			t.Errorf("Text(%q) = %q, expected %q", cell, back, text)
		}
	}
}
