package yamldoc

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestGetters(t *testing.T) {
	d := Parse("f.yaml", []byte(`
text: hello
word: b
int: 1_000
hex: 0x10
big: 18446744073709551615
float: 0.25
bool: true
wait: 2m 30s
size: 256 KiB
rate: 2 Mbit/s
far: 10 km
list: [1, 2]
nothing: null
any: {a: 1, b: [x, 2.5, true, null], c: &anchor {d: e}, f: *anchor}
`))
	m := d.Root().Mapping("text", "word", "int", "hex", "big", "float", "bool", "wait", "size", "rate", "far", "list", "nothing", "any")
	for _, c := range []struct{ name, got, want any }{
		{"text", m.Field("text").String(""), "hello"},
		{"word", m.Field("word").OneOf("", "a", "b"), "b"},
		{"int", m.Field("int").Int(0, 0, 5000), int64(1000)},
		{"hex", m.Field("hex").Int(0, 0, 5000), int64(16)},
		{"big", m.Field("big").Uint64(0), uint64(1<<64 - 1)},
		{"float", m.Field("float").Float(0, 0, 1), 0.25},
		{"bool", m.Field("bool").Bool(false), true},
		{"wait", m.Field("wait").Duration(0), 150 * time.Second},
		{"size", m.Field("size").Bytes(0), int64(256 << 10)},
		{"rate", m.Field("rate").BitsPerSecond(0), 2e6},
		{"far", m.Field("far").Metres(0), 1e4},
		{"list", len(m.Field("list").List()), 2},
		{"null is absent", m.Field("nothing").Present(), false},
		{"absent takes the default", m.Field("absent").Int(7, 0, 9), int64(7)},
		{"any", m.Field("any").Any(), map[string]any{
			"a": int64(1), "b": []any{"x", 2.5, true, nil},
			"c": map[string]any{"d": "e"}, "f": map[string]any{"d": "e"},
		}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%v: got %v (%T), want %v (%T)", c.name, c.got, c.got, c.want, c.want)
		}
	}
	if err := d.Err(); err != nil {
		t.Errorf("problems: %v", err)
	}
}

func TestProblems(t *testing.T) {
	read := func(d *Document) {
		m := d.Root().Mapping("name", "order", "count", "wait", "size", "inner", "list")
		m.Field("name").Required().String("")
		m.Field("order").OneOf("fixed", "fixed", "random")
		m.Field("count").Int(1, 1, 10)
		m.Field("wait").Duration(0)
		m.Field("size").Bytes(0)
		in := m.Field("inner").Mapping("x")
		if m.Field("inner").Present() {
			in.Field("x").Required().Float(0, 0, 1)
		}
		m.Field("list").List()
	}
	for _, c := range []struct{ name, text, want string }{
		{"good", "name: a\ninner: {x: 1}", ""},
		{"empty", "", "f: the document is empty"},
		{"comment only", "# nothing\n", "f: the document is empty"},
		{"several at once", "order: ranom\ncount: 11\nwait: soon\n", `f:1:1: name is missing
f:1:8: order: unknown "ranom" (did you mean "random"?); there are fixed, random
f:2:8: count: expected a whole number from 1 to 10, found "11"
f:3:7: wait: expected a duration such as "100ms" or "2m30s", found "soon"`},
		{"unknown key", "name: a\nsizes: 1 B\n", `f:2:1: unknown key "sizes" (did you mean "size"?); there are name, order, count, wait, size, inner, list`},
		{"key twice", "name: a\nname: b\n", `f:2:1: name is given twice`},
		{"wrong form", "name: [a]\nlist: 3\n", "f:1:7: name: expected text, found a list\nf:2:7: list: expected a list, found \"3\""},
		{"no mapping is said once", "name: a\ninner: 3\n", `f:2:8: inner: expected a mapping, found "3"`},
		{"root no mapping is said once", "[1]", `f:1:1: expected a mapping, found a list`},
		{"two documents", "name: a\n---\nname: b\n", "f:2:1: a second document begins here; expected one a file"},
		{"not YAML", "name: a\n\tb: 1\n", "f:2:1: not YAML: found a tab character that violates indentation"},
		{"self-reference", "name: &a [*a]\n", "refers to itself"},
		{"negative duration", "name: a\nwait: -1s", `f:2:7: wait: expected a duration such as "100ms" or "2m30s", found "-1s"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Parse("f", []byte(c.text))
			read(d)
			got := ""
			if err := d.Err(); err != nil {
				got = err.Error()
				var ps Problems
				if !errors.As(err, &ps) {
					t.Errorf("error is %T, want Problems", err)
				}
			}
			if got != c.want && (c.name != "self-reference" || !strings.Contains(got, c.want)) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// An alias bomb must be refused, not walked.
func TestAliasBomb(t *testing.T) {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		p, q := string(rune('a'+i-1)), string(rune('a'+i))
		if i == 1 {
			p = "a0"
		}
		text += q + ": &" + q + " [*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + "]\n"
	}
	if err := Parse("f", []byte(text)).Err(); err == nil || !strings.Contains(err.Error(), "more than 100000 values") {
		t.Errorf("got %v", err)
	}
}

// FuzzDocument: any getter on any value of any document returns, and a
// document that was refused has at least one problem with its file's name.
func FuzzDocument(f *testing.F) {
	for _, s := range []string{"", "a: 1", "- a\n- {b: *c}", "a: &x [*x]", "? [a]\n: b", "<<: {a: 1}", "a: !!int b", "a: !!null {}", "a: !!binary x", "---\n---\n", "\x00", "a: |\n  b\n", "%YAML 1.2\n---\na", "a: &x\nb: *x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := Parse("f", data)
		exercise(d.Root(), 0)
		if err := d.Err(); err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("problem without its file: %v", err)
		}
	})
}

func exercise(v Value, depth int) {
	v.Required().String("")
	v.OneOf("", "a", "b")
	v.Int(0, -5, 5)
	v.Uint64(0)
	v.Float(0, 0, 1)
	v.Bool(false)
	v.Duration(0)
	v.Bytes(0)
	v.BitsPerSecond(0)
	v.Metres(0)
	v.Any()
	v.Position()
	if depth > 3 {
		return
	}
	for _, e := range v.List() {
		exercise(e, depth+1)
	}
	m := v.Mapping()
	for _, k := range m.Keys() {
		m.Key(k).Problem("noted")
		exercise(m.Field(k), depth+1)
	}
	exercise(m.Field("absent"), depth+1)
	v.Mapping("a", "known")
}

// A form shows a problem at its field by the path.
func TestProblemsNameTheirValue(t *testing.T) {
	d := Parse("f", []byte("list:\n  - {count: x, other: 1}\n  - {}\nsize: {a: 1 B}\n"))
	m := d.Root().Mapping("list", "size", "name")
	for _, v := range m.Field("list").List() {
		e := v.Mapping("count", "name")
		e.Field("count").Int(0, 0, 9)
		e.Field("name").Required()
	}
	m.Field("name").Required()
	m.Field("size").Mapping().Key("a").Problem("no such place")
	m.Field("size").Problem("no size for b")
	var problems Problems
	if !errors.As(d.Err(), &problems) {
		t.Fatal("no problems")
	}
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.Path)
	}
	slices.Sort(paths)
	want := []string{"list[0].count", "list[0].name", "list[0].other", "list[1].name", "name", "size", "size.a"}
	if !slices.Equal(paths, want) {
		t.Errorf("%q, want %q", paths, want)
	}
}
