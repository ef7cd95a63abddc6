package library

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"linktrial/internal/yamldoc"
)

var plainSeed = regexp.MustCompile(`^[0-9][0-9A-Za-z_]*`)

// withSeedOf returns the text of a plan for start n of a rule, from 1: the plan with
// its seed raised by n-1, so that each start meets channels, orders and payloads of
// its own, and running the text again meets the same.
func withSeedOf(n int, text []byte) ([]byte, error) {
	seed, value, err := seedOf(text)
	if err != nil {
		return nil, err
	}
	want := seed + uint64(n-1) // after 2^64-1 comes 0
	line, column := value.Position()
	lines := strings.Split(string(text), "\n")
	if line > len(lines) {
		return nil, errSeed
	}
	runes := []rune(lines[line-1])
	if column > len(runes) {
		return nil, errSeed
	}
	before, rest := string(runes[:column-1]), string(runes[column-1:])
	lines[line-1] = before + plainSeed.ReplaceAllString(rest, strconv.FormatUint(want, 10))
	out := []byte(strings.Join(lines, "\n"))
	if got, _, err := seedOf(out); err != nil || got != want {
		return nil, errSeed
	}
	return out, nil
}

// errSeed reports a seed that can be read and not be replaced, as an alias.
var errSeed = errors.New("the seed of a plan that starts repeatedly is raised with each start: expected it as a plain number, as in \"seed: 1\"")

func seedOf(text []byte) (uint64, yamldoc.Value, error) {
	d := yamldoc.Parse("plan", text)
	root := d.Root()
	if !root.IsMapping() {
		return 0, yamldoc.Value{}, errSeed
	}
	v := root.Mapping().Field("seed")
	seed := v.Uint64(0)
	if !v.Present() || !v.OK() {
		return 0, v, fmt.Errorf("%w; found none", errSeed)
	}
	return seed, v, nil
}
