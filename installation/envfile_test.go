package installation

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Each text is read as systemd 252 reads it (src/basic/env-file.c and its tests).
func TestEnvFile(t *testing.T) {
	for text, want := range map[string][][2]string{
		"":                                  nil,
		"A=b":                               {{"A", "b"}},
		"A=b\n":                             {{"A", "b"}},
		"  A = b c \t\n":                    {{"A", "b c"}},
		"A=\nB=":                            {{"A", ""}, {"B", ""}},
		"# A=b\n;C=d\nE=f # g\n":            {{"E", "f # g"}},
		"# goes on \\\nA=b\nC=d\n":          {{"C", "d"}},
		"no assignment\nA=b\r\nC=d":         {{"A", "b"}, {"C", "d"}},
		`A="b c" 'd' e` + "\n":              {{"A", "b cde"}},
		`A="q\"b\\s\$d\` + "`g\\n\"\n":      {{"A", "q\"b\\s$d`g\\n"}},
		"A='b \"c\" \\d'\n":                 {{"A", `b "c" \d`}},
		"A='b\nc'\nD=e\n":                   {{"A", "b\nc"}, {"D", "e"}},
		"A=b\\\nc\n":                        {{"A", "bc"}},
		"A=\"b\\\nc\"\n":                    {{"A", "bc"}},
		"A=b\\ \n":                          {{"A", "b "}},
		"A=b\"c d\"\n":                      {{"A", `b"c d"`}},
		"A=b=c\nA=d\n":                      {{"A", "b=c"}, {"A", "d"}},
		"LINKTRIAL_OPTIONS=\"--a='b c'\"\n": {{"LINKTRIAL_OPTIONS", "--a='b c'"}},
	} {
		f := parseEnvFile(text)
		var got [][2]string
		for _, a := range f.lines {
			got = append(got, [2]string{a.key, a.value})
		}
		if !reflect.DeepEqual(got, want) || f.open != "" {
			t.Errorf("%q is %q, expected %q; open: %q", text, got, want, f.open)
		}
	}
}

func TestSetAndUnset(t *testing.T) {
	for _, c := range []struct{ before, value, after string }{
		{"", "b", "A=b\n"},
		{"# by hand\nB=c", "b", "# by hand\nB=c\nA=b\n"},
		{"A=x\n# kept\nB=c\n", "two words", "A=\"two words\"\n# kept\nB=c\n"},
		{"A=x\nA=y\nB=c\n", "z", "A=x\nA=z\nB=c\n"},
		{"B=c\\", "z", "B=c\\\n\nA=z\n"},
		{"# c \\", "z", "# c \\\n\nA=z\n"},
		{"A='x\ny'\nB=c", `"$\` + "`", "A=\"\\\"\\$\\\\\\`\"\nB=c"},
	} {
		f := parseEnvFile(c.before)
		if err := f.set("A", c.value); err != nil || f.text != c.after {
			t.Errorf("%q with A=%q is %q, expected %q: %v", c.before, c.value, f.text, c.after, err)
		}
	}
	for _, value := range []string{"a\nb", "a\x00b", "a\xffb", "\x1b[0m"} {
		f := parseEnvFile("B=c\n")
		if err := f.set("A", value); err == nil || f.text != "B=c\n" {
			t.Errorf("A=%q: %q, %v", value, f.text, err)
		}
	}
	f := parseEnvFile("A=x\nB=c\n A=y\n")
	f.unset("A")
	if f.text != "B=c\n " {
		t.Errorf("%q", f.text)
	}
}

func TestEnvFileWithAnOpenQuote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.env")
	if err := os.WriteFile(path, []byte("A=\"b\nC=d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, there, err := readEnvFile(path); err == nil || !there || !strings.Contains(err.Error(), path+" ends within quotes") {
		t.Errorf("%v, %v", there, err)
	}
	if _, there, err := readEnvFile(path + "x"); err != nil || there {
		t.Errorf("%v, %v", there, err)
	}
}

// FuzzEnvFile: a value that was set is read again, and no other line changes.
func FuzzEnvFile(f *testing.F) {
	for _, text := range []string{"", "A=b\nKEY=c\n", "A='b\n", "KEY=\"a\\\"b\"\nB=\\", "# c\\\nKEY=d", "A=b\rKEY=c\r\n", "KEY"} {
		f.Add(text, "value")
		f.Add(text, `a "b" $c \d'`)
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		e := parseEnvFile(text)
		before := others(e)
		if e.open != "" {
			return
		}
		if err := e.set("KEY", value); err != nil {
			if e.text != text {
				t.Fatal("changed beside an error")
			}
			return
		}
		if got, ok := e.get("KEY"); !ok || got != value || e.open != "" {
			t.Fatalf("%q with KEY=%q is %q, which has %q", text, value, e.text, got)
		}
		if got := others(e); !reflect.DeepEqual(got, before) {
			t.Fatalf("%q with KEY=%q is %q: %q became %q", text, value, e.text, before, got)
		}
		e.unset("KEY")
		if _, ok := e.get("KEY"); ok || !reflect.DeepEqual(others(e), before) {
			t.Fatalf("%q without KEY is %q: %q became %q", text, e.text, before, others(e))
		}
	})
}

// others are the assignments of all keys but KEY.
func others(f envFile) (out [][2]string) {
	for _, a := range f.lines {
		if a.key != "KEY" {
			out = append(out, [2]string{a.key, a.value})
		}
	}
	return out
}

func TestOptions(t *testing.T) {
	for text, want := range map[string][]string{
		"":                         nil,
		"  ":                       nil,
		"--a --b=c":                {"--a", "--b=c"},
		`--a="b c" 'd e' f\ g`:     {"--a=b c", "d e", "f g"},
		`"" '' "a\"b" 'a\'b'`:      {"", "", `a"b`, "a'b"},
		"--a=b\\\\c\t--d\n":        {`--a=b\c`, "--d"},
		`--oidc-name='Our "own"' `: {`--oidc-name=Our "own"`},
	} {
		got, err := splitOptions(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %q, expected %q: %v", text, got, want, err)
		}
	}
	if _, err := splitOptions(`--a "b`); err == nil {
		t.Error("an open quote is taken")
	}
	value, rest := option([]string{"--radio", "a", "--x", "--radio=b", "--radios=c", "--radio"}, "--radio")
	if value != "b" || !reflect.DeepEqual(rest, []string{"--x", "--radios=c", "--radio"}) {
		t.Errorf("%q, %q", value, rest)
	}
}

// FuzzOptions: words that were joined are the same words.
func FuzzOptions(f *testing.F) {
	f.Add("--a=b --c 'd e' \"f\\\"\"")
	f.Add(`\`)
	f.Fuzz(func(t *testing.T, text string) {
		words, err := splitOptions(text)
		if err != nil {
			return
		}
		again, err := splitOptions(joinOptions(words))
		if err != nil || len(again)+len(words) > 0 && !reflect.DeepEqual(again, words) {
			t.Fatalf("%q are %q, and again %q: %v", text, words, again, err)
		}
	})
}
