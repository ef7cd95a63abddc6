package audit

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
)

// written is a record as a journal has it.
func written(record string) string {
	return fmt.Sprintf("%08x %s\n", crc32.Checksum([]byte(record), crc32.MakeTable(crc32.Castagnoli)), record)
}

func read(t testing.TB, text []byte) (out []string) {
	t.Helper()
	err := readLines(bytes.NewReader(text), func(l line) error {
		if l.fault != "" {
			out = append(out, fmt.Sprintf("line %d at %d: %s", l.number, l.offset, l.fault))
			return nil
		}
		out = append(out, string(l.record))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLines(t *testing.T) {
	a, b := written(`{"seq":1}`), written(`{"seq":2}`)
	for name, c := range map[string]struct{ text, want string }{
		"whole":      {a + b, `{"seq":1}|{"seq":2}`},
		"torn":       {a + b[:7], `{"seq":1}|line 2 at 19: the file ends in 7 bytes that are no whole line`},
		"zeros":      {a + "\x00\x00\x00", `{"seq":1}|line 2 at 19: the file ends in 3 bytes that are no whole line`},
		"zero line":  {"\x00\x00\n" + a, `line 1 at 0: the line is 2 zero bytes|{"seq":1}`},
		"one bit":    {strings.Replace(a, `1}`, `3}`, 1) + b, `line 1 at 0: the record's CRC-32C is d1513009, the line says f61400e7|{"seq":2}`},
		"form":       {"nonsense\n" + b, `line 1 at 0: the line is no checksum and record|{"seq":2}`},
		"upper case": {strings.ToUpper(a[:9]) + a[9:], `line 1 at 0: the line begins with "` + strings.ToUpper(a[:8]) + `", expected a CRC-32C in eight lower-case hexadecimal digits`},
		"long":       {strings.Repeat("x", maxLine+9) + "\n" + b, fmt.Sprintf(`line 1 at 0: the line has %d bytes, expected at most %d|{"seq":2}`, maxLine+9, maxLine)},
	} {
		if got := strings.Join(read(t, []byte(c.text)), "|"); got != c.want {
			t.Errorf("%s:\n%s\nexpected\n%s", name, got, c.want)
		}
	}
}

// FuzzLines: whatever is in a file, every byte of it belongs to one line, and a record
// that is returned has its checksum.
func FuzzLines(f *testing.F) {
	f.Add([]byte(written(`{"seq":1}`) + written(`{}`)))
	f.Add([]byte("\x00\x00\n00000000 \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		end := int64(0)
		err := readLines(bytes.NewReader(text), func(l line) error {
			if l.offset != end && !l.torn {
				t.Fatalf("line %d begins at %d, the one before ended at %d", l.number, l.offset, end)
			}
			next := bytes.IndexByte(text[l.offset:], '\n')
			if next < 0 {
				next = len(text[l.offset:]) - 1
			}
			end = l.offset + int64(next) + 1
			if l.fault == "" && !bytes.Equal(text[l.offset:end], []byte(written(string(l.record)))) {
				t.Fatalf("line %d: %q is returned of %q", l.number, l.record, text[l.offset:end])
			}
			return nil
		})
		if err != nil || end != int64(len(text)) {
			t.Fatalf("%d of %d bytes: %v", end, len(text), err)
		}
	})
}
