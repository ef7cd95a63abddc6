package cxxtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/cxx/cxxtest"
)

// TestParametersAgree: of documents that were mutated, the parser in C++ takes those
// that Go's takes and refuses the others, and none ends the driver by a signal.
func TestParametersAgree(t *testing.T) {
	t.Parallel()
	d := cxxtest.Build(t, "cxxtcp")
	server := `{"contract":2,"role":"server","local":{"address":"127.0.0.1","port":%d},"device":"lo","options":{},"limits":{"connect_ms":500,"transfer_ms":500},"sample_interval_ms":100}`
	documents := []string{
		`{"contract":2,"role":"query","options":{}}`,
		fmt.Sprintf(server, cxxtest.FreePort(t)),
		fmt.Sprintf(`{"contract":2,"role":"client","remote":{"address":"127.0.0.1","port":%d},"local":{"address":"127.0.0.1"},"device":"lo","options":{},"transfer":{"id":%q,"size_bytes":5,"duration_ms":100},"limits":{"connect_ms":500,"transfer_ms":500},"sample_interval_ms":100}`, cxxtest.FreePort(t), cxxtest.Transfer),
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var taken, refused atomic.Int32
	var all sync.WaitGroup
	turn := make(chan struct{}, 8)
	for _, base := range documents {
		for _, doc := range mutations(base, rng) {
			turn <- struct{}{}
			all.Go(func() {
				defer func() { <-turn }()
				_, err := contract.ParseParameters([]byte(doc))
				took, said, fault := takes(t, d, doc)
				switch {
				case fault != nil:
					t.Errorf("%.300q: %v", doc, fault)
				case took:
					taken.Add(1)
				default:
					refused.Add(1)
				}
				if fault == nil && took != (err == nil) {
					t.Errorf("%q\nGo: %v\nC++ takes it: %t, %s", doc, err, took, said)
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d documents were taken, %d refused", taken.Load(), refused.Load())
	if taken.Load() < 50 || refused.Load() < 200 {
		t.Errorf("too few documents: %d were taken, %d refused", taken.Load(), refused.Load())
	}
}

// values take the place of each value of a document.
var values = []string{`null`, `true`, `0`, `-1`, `1`, `1.5`, `1e3`, `65536`, `2147483648`, `9223372036854775808`, `1e999`, `""`, `"x"`, `"-1"`, `"18446744073709551616"`, `[]`, `{}`, `[null]`}

// mutations of a document: each of its values replaced, or left out, and its text damaged.
func mutations(base string, rng *rand.Rand) []string {
	var paths [][]string
	var find func(at []string, raw string)
	find = func(at []string, raw string) {
		var m map[string]json.RawMessage
		if json.Unmarshal([]byte(raw), &m) != nil {
			return
		}
		for _, k := range slices.Sorted(keys(m)) {
			p := append(slices.Clone(at), k)
			paths = append(paths, p)
			find(p, string(m[k]))
		}
	}
	find(nil, base)
	out := []string{base, "", "null", "[]", "{", base + base, " " + base + "\n", strings.Repeat("[", 100_000)}
	for _, p := range paths {
		out = append(out, replaced(base, p, ""))
		for _, v := range values {
			out = append(out, replaced(base, p, v))
		}
	}
	for range 60 {
		b := []byte(base)
		switch i := rng.IntN(len(b)); rng.IntN(3) {
		case 0:
			b = b[:i]
		case 1:
			b = slices.Delete(b, i, i+1)
		case 2:
			b = slices.Insert(b, i, "\x00\"{}[],:\\u09-"[rng.IntN(13)])
		}
		out = append(out, string(b))
	}
	return out
}

func keys(m map[string]json.RawMessage) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// replaced is a document with another value at a path, or with none.
func replaced(doc string, path []string, value string) string {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(doc), &m); err != nil {
		panic(err)
	}
	switch {
	case len(path) > 1:
		m[path[0]] = json.RawMessage(replaced(string(m[path[0]]), path[1:], value))
	case value == "":
		delete(m, path[0])
	default:
		// The encoder takes no number that it cannot hold.
		var b strings.Builder
		b.WriteString("{")
		for _, k := range slices.Sorted(keys(m)) {
			v := string(m[k])
			if k == path[0] {
				v = value
			}
			if b.Len() > 1 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, "%q:%s", k, v)
		}
		return b.String() + "}"
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// takes reports whether a driver goes on after it has read a document: its first
// event is not the one of bad parameters.
func takes(t *testing.T, d *cxxtest.Driver, doc string) (took bool, said string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), cxxtest.Hang)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.Program)
	cmd.Stdin = strings.NewReader(doc)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out := &firstLine{then: cancel}
	cmd.Stdout = out
	err = cmd.Run()
	if ctx.Err() == context.DeadlineExceeded {
		return false, "", fmt.Errorf("nothing within %s", cxxtest.Hang)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signaled() && status.Signal() != syscall.SIGTERM {
		return false, "", fmt.Errorf("it ended with %v", cmd.ProcessState)
	}
	line, _, whole := bytes.Cut(out.b.Bytes(), []byte("\n"))
	if !whole {
		return false, "", fmt.Errorf("no event: it ended with %v", cmd.ProcessState)
	}
	e, err := contract.ParseEvent(line)
	if err != nil {
		return false, "", fmt.Errorf("%q: %w", line, err)
	}
	return e.Event != contract.KindError || e.Code != contract.CodeBadParameters, string(line), nil
}

// firstLine calls then once it has a line.
type firstLine struct {
	b    bytes.Buffer
	then func()
}

func (f *firstLine) Write(p []byte) (int, error) {
	n, err := f.b.Write(p)
	if bytes.IndexByte(p, '\n') >= 0 {
		f.then()
	}
	return n, err
}
