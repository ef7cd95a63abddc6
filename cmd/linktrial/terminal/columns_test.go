package terminal

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func table(t *testing.T, width int, head string, lines ...string) string {
	t.Helper()
	var b bytes.Buffer
	err := writeColumns(&b, width, head, func(w io.Writer) {
		for _, l := range lines {
			fmt.Fprintln(w, l)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestColumns(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		lines []string
		want  string
	}{
		{"into a file", 0, []string{"tcp\tyes\tcongestion=reno|cubic|bbr nodelay mss send_buffer"}, "" +
			"NAME  RUNS  OPTIONS\n" +
			"tcp   yes   congestion=reno|cubic|bbr nodelay mss send_buffer\n"},
		{"wide enough", 60, []string{"tcp\tyes\tnodelay"}, "" +
			"NAME  RUNS  OPTIONS\n" +
			"tcp   yes   nodelay\n"},
		{"folded", 40, []string{"tcp\tyes\tcongestion=reno|cubic|bbr|westwood nodelay mss", "udt\tno: not on this kernel of the machine\tmss"}, "" +
			"NAME  RUNS            OPTIONS\n" +
			"tcp   yes             congestion=reno|\n" +
			"                      cubic|bbr|westwood\n" +
			"                      nodelay mss\n" +
			"udt   no: not on      mss\n" +
			"      this kernel of\n" +
			"      the machine\n"},
		{"a line without cells", 40, []string{"a remark that is longer than any of the cells", "é\tyes\t"}, "" +
			"NAME  RUNS  OPTIONS\n" +
			"a remark that is longer than any of the cells\n" +
			"é     yes\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := table(t, c.width, "NAME\tRUNS\tOPTIONS", c.lines...); got != c.want {
				t.Errorf("got\n%s\nexpected\n%s", got, c.want)
			}
		})
	}
}

// No line of a folded table is wider than the terminal as long as its columns fit at all,
// and folding loses nothing but spaces.
func TestFoldedColumnsFit(t *testing.T) {
	cells := []string{"a", "word word word", strings.Repeat("q", 90), "one|two|three|four|five|six|seven|eight|nine|ten"}
	for width := narrowestTable; width < 200; width++ {
		got := table(t, width, "A\tB\tC\tD", strings.Join(cells, "\t"))
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Fatalf("a line of %d characters at a width of %d:\n%s", n, width, got)
			}
		}
		if n := strings.Count(got, "q"); n != 90 {
			t.Fatalf("%d of 90 characters at a width of %d:\n%s", n, width, got)
		}
	}
}
