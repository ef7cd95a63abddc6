package process

import (
	"os"
	"strings"
	"testing"
)

// FuzzParseStat: a command's name, which the process itself sets, moves no field.
func FuzzParseStat(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("tcp", string(own))
	f.Add(") Z 1 1 1", string(own))
	f.Add("(", "1 (a) S")
	f.Add("", "1 )( S 1 1 1")
	f.Fuzz(func(t *testing.T, name, line string) {
		if _, err := parseStat(1, []byte(line)); err != nil {
			return
		}
		_, rest, _ := strings.Cut(string(own), ") ")
		if strings.Contains(rest, ")") {
			t.Skip("the name of the test has a bracket")
		}
		s, err := parseStat(os.Getpid(), []byte("1 ("+name+") "+rest))
		if err != nil {
			t.Fatal(err)
		}
		if s.name != name || s.state == 0 || s.parent != os.Getppid() && s.parent == 0 {
			t.Fatalf("%q: %+v", name, s)
		}
	})
}
