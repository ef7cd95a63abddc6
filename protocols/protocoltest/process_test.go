package protocoltest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"linktrial/protocols/contract"
)

// read is what is left of an output written in pieces of n bytes.
func read(output []byte, n int) *proc {
	p := &proc{}
	l := &lines{p: p}
	for b := output; len(b) > 0; {
		k := min(n, len(b))
		_, _ = l.Write(b[:k])
		b = b[k:]
	}
	return p
}

func TestLines(t *testing.T) {
	good := `{"event":"error","code":"reset"}` + "\n"
	for _, c := range []struct {
		output string
		events int
		fault  string
	}{
		{"", 0, ""},
		{good + good, 2, ""},
		{good + "hello\n" + good, 2, "line 2"},
		{"\n", 0, "line 1"},
		{strings.Repeat("x", contract.MaxLine+1), 0, "longer than"},
		{good + strings.Repeat("x", contract.MaxLine+1) + "\n" + good, 1, "longer than"},
		{strings.Repeat("x", contract.MaxLine) + "\n" + good, 1, "line 1"},
		{strings.Repeat("x\n", 100), 0, "line 1"},
	} {
		for _, n := range []int{1 << 20, 7} {
			p := read([]byte(c.output), n)
			if len(p.events) != c.events || (c.fault == "") != (len(p.faults) == 0) || len(p.faults) > maxFaults ||
				c.fault != "" && !strings.Contains(p.faults[0], c.fault) {
				t.Errorf("%.40q in pieces of %d: %d events, faults %.200q", c.output, n, len(p.events), p.faults)
			}
		}
	}
}

// FuzzLines: how the output is cut into pieces changes nothing.
func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"event":"error","code":"reset"}`+"\nx\n\n"), uint16(3))
	f.Add(bytes.Repeat([]byte("y"), contract.MaxLine+2), uint16(1000))
	f.Fuzz(func(t *testing.T, output []byte, n uint16) {
		whole, parts := read(output, len(output)+1), read(output, int(n)+1)
		for _, p := range []*proc{whole, parts} {
			for i := range p.events {
				p.events[i].at = whole.began
			}
		}
		if a, b := fmt.Sprint(len(whole.events), whole.faults, len(whole.rest)), fmt.Sprint(len(parts.events), parts.faults, len(parts.rest)); a != b {
			t.Errorf("whole: %s; in pieces of %d: %s", a, int(n)+1, b)
		}
	})
}
