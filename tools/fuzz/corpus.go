package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxInput bounds an input that is kept, in bytes: what reaches other code is seldom long.
// Of targets all of whose inputs are longer, such as archives, maxLarge does.
const (
	maxInput = 512
	maxLarge = 16 << 10
)

// keepInputs copies inputs that the fuzzer found to reach other code into the
// packages, so that every run of their tests and every later round begins with them.
func keepInputs(ctx context.Context, chosen []target, most int) error {
	cache, err := cacheFolder(ctx)
	if err != nil {
		return err
	}
	for _, t := range chosen {
		n, err := keepInputsOf(t, filepath.Join(cache, t.pkg, t.name), most)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		fmt.Printf("%-60s %d inputs are new\n", t, n)
	}
	return nil
}

func keepInputsOf(t target, from string, most int) (added int, err error) {
	to := filepath.Join(t.dir, "testdata", "fuzz", t.name)
	there, err := os.ReadDir(to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	inputs, err := inputsOf(from, maxInput)
	if err == nil && len(inputs) == 0 {
		inputs, err = inputsOf(from, maxLarge)
	}
	if err != nil {
		return 0, err
	}
	for _, in := range inputs {
		if len(there)+added >= most {
			break
		}
		if slices.ContainsFunc(there, func(e fs.DirEntry) bool { return e.Name() == in.name }) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, in.name))
		if err != nil {
			return added, err
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return added, err
		}
		if err := os.WriteFile(filepath.Join(to, in.name), b, 0o644); err != nil {
			return added, err
		}
		added++
	}
	return added, nil
}

type input struct {
	name string
	size int64
}

// inputsOf lists the inputs of a folder that have most bytes or fewer, those of different sizes first:
// inputs of one size are often variants of each other.
func inputsOf(dir string, most int64) ([]input, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var first, rest []input
	seen := map[int64]bool{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() > most {
			continue
		}
		in := input{e.Name(), info.Size()}
		if seen[in.size] {
			rest = append(rest, in)
			continue
		}
		seen[in.size] = true
		first = append(first, in)
	}
	larger := func(a, b input) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name)) }
	slices.SortFunc(first, larger)
	// Of the sizes that there are, some over the whole range.
	return slices.Concat(spread(first), rest), nil
}

// spread orders a list so that each of its beginnings has elements over the whole list.
func spread(list []input) []input {
	out := make([]input, 0, len(list))
	taken := make([]bool, len(list))
	for step := len(list); step > 0; step /= 2 {
		for i := 0; i < len(list); i += step {
			if !taken[i] {
				taken[i] = true
				out = append(out, list[i])
			}
		}
	}
	return out
}
