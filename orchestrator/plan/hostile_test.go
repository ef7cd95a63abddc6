package plan_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"linktrial/internal/radio"
)

// What a document may cost, whatever it says.
const (
	mostTime  = time.Second // of the processor: other work on the machine does not count
	mostBytes = 200 << 20   // allocated, also what was freed in between
)

// hostileInputs is how many mutated documents are tried; LINKTRIAL_HOSTILE is
// another number.
const hostileInputs = 1000

// TestHostileDocuments reads mutated plans, profiles, topologies, traces and
// manifests, and compiles what is left of the plans. None may panic, take a
// second or 200 MB, and every problem has a line.
func TestHostileDocuments(t *testing.T) {
	n := hostileInputs
	if s := os.Getenv("LINKTRIAL_HOSTILE"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	docs := append(documents(t), traceDocument())
	kinds := map[string][]document{}
	var names []string
	for _, d := range docs {
		kind := kindOf(d)
		if kinds[kind] == nil {
			names = append(names, kind)
		}
		kinds[kind] = append(kinds[kind], d)
	}
	// Processor time is the thread's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var slowest, largest cost
	refused := 0
	for i := range n {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		of := kinds[names[i%len(names)]]
		d := of[rng.IntN(len(of))]
		text := mutate(rng, d)
		c, err := measure(d, text)
		c.name = fmt.Sprintf("input %d, of %s", i, d.file)
		if err != nil {
			refused++
		}
		if c.took > slowest.took {
			slowest = c
		}
		if c.bytes > largest.bytes {
			largest = c
		}
		if c.panicked != "" || c.took > mostTime || c.bytes > mostBytes {
			t.Errorf("%s: %s, %d MB %s\n%s", c.name, c.took, c.bytes>>20, c.panicked, head(text))
		}
		for _, p := range problemsOf(t, err) {
			ofWhole := strings.Contains(p.Message, "the document is empty") || strings.Contains(p.Message, "long, expected at most") || strings.Contains(p.Message, " more problems; the first ")
			if p.Line < 1 && !ofWhole {
				t.Errorf("%s: a problem without a line: %v\n%s", c.name, p, head(text))
			}
			if len(p.Message) > 2000 || strings.ContainsAny(p.Message, "\x1b\x00\n") {
				t.Errorf("%s: a message that no terminal should show: %q", c.name, p.Message)
			}
		}
	}
	t.Logf("%d inputs, %d refused; the slowest took %s (%s), the largest %.1f MB (%s)", n, refused, slowest.took, slowest.name, float64(largest.bytes)/(1<<20), largest.name)
	if refused < n/2 || refused == n {
		t.Errorf("%d of %d inputs refused: the mutations are too harsh or do nothing", refused, n)
	}
}

func kindOf(d document) string {
	switch {
	case bytes.Contains(d.text, []byte("treatments:")):
		return "plan"
	case bytes.Contains(d.text, []byte("stations:")):
		return "topology"
	case bytes.Contains(d.text, []byte("contract:")):
		return "manifest"
	case bytes.HasPrefix(d.text, []byte("time_s")):
		return "trace"
	}
	return "profile"
}

func traceDocument() document {
	var b strings.Builder
	b.WriteString("time_s,rate_bit_s,delay_ms,loss\n")
	for i := range 500 {
		fmt.Fprintf(&b, "%d,%d,%d,0.%d\n", i, 1_000_000-i, i%90, i%10)
	}
	return document{"trace.csv", []byte(b.String()), func(text []byte) error { _, err := radio.ParseTrace("trace.csv", text); return err }}
}

// cost is what reading one document has cost.
type cost struct {
	name     string
	took     time.Duration
	bytes    uint64
	panicked string
}

func measure(d document, text []byte) (c cost, err error) {
	began, allocated := processorTime(), allocations()
	defer func() {
		c.took, c.bytes = processorTime()-began, allocations()-allocated
		if r := recover(); r != nil {
			c.panicked = fmt.Sprintf("%v\n%s", r, debug.Stack())
		}
	}()
	return c, d.read(text)
}

func processorTime() time.Duration {
	var u syscall.Rusage
	const thread = 1 // RUSAGE_THREAD, which the package syscall does not name
	if err := syscall.Getrusage(thread, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func allocations() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func head(text []byte) string { return fmt.Sprintf("%.1500s", text) }

// hostile is values that have broken programs.
var hostile = []string{"", "~", "null", "0", "-1", "010", "1e300", "-1e300", ".nan", ".inf", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e300 km",
	"10000", "1000000", "200000", "1 B", "0 B", "-1 B", "1024 GiB", "9999999999 GiB", "1 bit/s", "100 Gbit/s", "0s", "1ns", "-1s", "168h", "9999999h", "1ms", "true", "no", "2026-01-01",
	"[]", "{}", "a\x00b", "\x1b[31mred", "\u202eabc", "\u200b", "../../etc/passwd", "*", "&", "!!binary x", "<<", strings.Repeat("x", 100_000), strings.Repeat("9", 400), "flows.count", "flows.duration",
	"channel.loss", "rate", "option.mss", "mpu4", "k-lot", "tcp", "cubicc", "tcp-cubic", "Linktrial\nLinktrial"}

// mutate makes a document that somebody may send.
func mutate(rng *rand.Rand, d document) []byte {
	if kindOf(d) == "trace" || rng.IntN(4) == 0 {
		return mutateBytes(rng, d.text)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(d.text, &doc); err != nil || len(doc.Content) == 0 {
		return mutateBytes(rng, d.text)
	}
	for range 1 + rng.IntN(3) {
		mutateTree(rng, doc.Content[0])
	}
	text, err := marshal(&doc)
	if err != nil {
		return mutateBytes(rng, d.text)
	}
	if rng.IntN(10) == 0 {
		return mutateBytes(rng, text)
	}
	return text
}

// marshal writes a tree; the library panics at some that no file could have.
func marshal(doc *yaml.Node) (text []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return yaml.Marshal(doc)
}

// parents is every collection of a tree that has something in it.
func parents(n *yaml.Node, out []*yaml.Node) []*yaml.Node {
	if len(n.Content) > 0 {
		out = append(out, n)
	}
	for _, c := range n.Content {
		out = parents(c, out)
	}
	return out
}

func mutateTree(rng *rand.Rand, root *yaml.Node) {
	all := parents(root, nil)
	if len(all) == 0 {
		return
	}
	p := all[rng.IntN(len(all))]
	i := rng.IntN(len(p.Content))
	if p.Kind == yaml.MappingNode && rng.IntN(8) > 0 {
		i |= 1 // a value, mostly
	}
	c := p.Content[i]
	value := func() *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: hostile[rng.IntN(len(hostile))]}
	}
	switch rng.IntN(10) {
	case 0: // delete
		step := 1
		if p.Kind == yaml.MappingNode {
			i, step = i&^1, 2
		}
		p.Content = append(p.Content[:i:i], p.Content[i+step:]...)
	case 1: // repeat
		times := []int{1, 2, 100, 1000}[rng.IntN(4)]
		for range times {
			p.Content = append(p.Content, p.Content[i&^1:min(i&^1+2, len(p.Content))]...)
		}
		p.Content = p.Content[:len(p.Content)&^1]
	case 2: // another part of the document
		q := all[rng.IntN(len(all))]
		p.Content[i] = cloned(q.Content[rng.IntN(len(q.Content))])
	case 3: // nothing
		p.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	case 4: // far in
		for range 10 + rng.IntN(200) {
			c = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{c}}
		}
		p.Content[i] = c
	case 5: // many, each different
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for k := range 1 + rng.IntN(2000) {
			list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprintf("%d%s", k+1, []string{"", " B", " Mbit/s", "ms", " KiB"}[rng.IntN(5)])})
		}
		p.Content[i] = list
	case 6: // aliases of aliases
		p.Content[i] = bomb(rng)
	default:
		p.Content[i] = value()
	}
}

// cloned is a copy of a part of a tree, which shares nothing with it.
func cloned(n *yaml.Node) *yaml.Node {
	out := *n
	out.Anchor, out.Content = "", nil
	for _, c := range n.Content {
		out.Content = append(out.Content, cloned(c))
	}
	return &out
}

// bomb is lists of aliases of lists of aliases.
func bomb(rng *rand.Rand) *yaml.Node {
	last := &yaml.Node{Kind: yaml.SequenceNode, Anchor: "b0", Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "x"}}}
	out := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{last}}
	for k := range 1 + rng.IntN(12) {
		next := &yaml.Node{Kind: yaml.SequenceNode, Anchor: fmt.Sprintf("b%d", k+1)}
		for range 8 {
			next.Content = append(next.Content, &yaml.Node{Kind: yaml.AliasNode, Value: last.Anchor, Alias: last})
		}
		out.Content = append(out.Content, next)
		last = next
	}
	return out
}

func mutateBytes(rng *rand.Rand, text []byte) []byte {
	out := bytes.Clone(text)
	for range 1 + rng.IntN(5) {
		if len(out) == 0 {
			return out
		}
		i := rng.IntN(len(out))
		j := min(len(out), i+1+rng.IntN(60))
		switch rng.IntN(7) {
		case 0:
			out[i] = byte(rng.UintN(256))
		case 1:
			out = append(out[:i:i], out[j:]...)
		case 2:
			out = append(out[:j:j], out[i:]...)
		case 3:
			out = append(out[:i:i], append([]byte(hostile[rng.IntN(len(hostile))]), out[i:]...)...)
		case 4:
			out = append(out[:i:i], append([]byte(strings.Repeat([]string{"[", "{", "- ", "? ", "\n", "a: ", "&a ", "\t", "\"", "#"}[rng.IntN(10)], 1+rng.IntN(3000))), out[i:]...)...)
		case 5:
			out = out[:i]
		case 6:
			out = bytes.Repeat(out, min(1+rng.IntN(100), 1+(2<<20)/len(out)))
		}
	}
	return out
}
