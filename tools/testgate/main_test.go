package main

import (
	"strings"
	"testing"
)

func TestGate(t *testing.T) {
	const (
		pass = `{"Action":"pass","Package":"p","Test":"TestA","Elapsed":3.5}
{"Action":"pass","Package":"p","Test":"TestA/one","Elapsed":3.4}
{"Action":"pass","Package":"p","Elapsed":4.2}
`
		fail = `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: got 1, expected 2\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0}
`
		skip = `{"Action":"output","Package":"p","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:3: needs root\n"}
{"Action":"skip","Package":"p","Test":"TestC","Elapsed":0}
`
		broken = `{"Action":"build-output","ImportPath":"q","Output":"q.go:1: no\n"}
{"Action":"build-fail","ImportPath":"q"}
`
	)
	for name, c := range map[string]struct {
		in   string
		code int
		want []string
		last string
	}{
		"all pass":         {pass, 0, []string{"slow  package     4.2 s  p\n", "slow  test        3.5 s  p/TestA\n"}, "2 passed, 0 failed, 0 skipped\n"},
		"two runs":         {pass + pass, 0, nil, "4 passed, 0 failed, 0 skipped\n"},
		"a failure":        {pass + fail, 1, []string{"b_test.go:3: got 1, expected 2"}, "2 passed, 1 failed, 0 skipped\n"},
		"an expected skip": {pass + skip, 0, []string{"skip  p/TestC: expected"}, "2 passed, 0 failed, 1 skipped\n"},
		"another skip":     {pass + strings.ReplaceAll(skip, "TestC", "TestD"), 1, []string{"skip  p/TestD: NOT EXPECTED", "needs root"}, "2 passed, 0 failed, 1 skipped\n"},
		"a broken build":   {pass + broken, 1, []string{"q.go:1: no"}, "2 passed, 0 failed, 0 skipped\n"},
		"no test":          {`{"Action":"pass","Package":"p","Elapsed":0}`, 1, []string{"no test was executed"}, "0 passed, 0 failed, 0 skipped\n"},
		"text between":     {"vet: something\n" + pass, 0, []string{"vet: something\n"}, "2 passed, 0 failed, 0 skipped\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if code := run(strings.NewReader(c.in), &out, map[string]bool{"p/TestC": true}); code != c.code {
				t.Errorf("exit code %d, expected %d", code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
			if !strings.HasSuffix(out.String(), c.last) {
				t.Errorf("the last line is not %q:\n%s", c.last, out.String())
			}
		})
	}
}
