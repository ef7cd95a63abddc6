package radio

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"linktrial/internal/yamldoc"
)

// Change is a new value for one parameter of a profile's emulation section. The
// path names it from there on: "rate", "channel.alpha", "arq.persistence",
// "channel.parts[1].period". The value is written as in the file: "16 kbit/s".
type Change struct {
	Path  string
	Value string
}

// ChangeError is why a profile cannot have a change.
type ChangeError struct {
	Index int    // of the change
	Path  string // of it
	Value bool   // whether its value is wrong; else its path is
	Err   error
}

func (e *ChangeError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *ChangeError) Unwrap() error { return e.Err }

// Vary reads a profile with some parameters of its emulation changed. The changed
// profile passes the same checks as a file; its Hash stays that of the text as
// given. What is wrong with a change is a [*ChangeError].
func Vary(file string, text []byte, changes []Change, open func(name string) ([]byte, error)) (*Profile, error) {
	t, err := ReadTree(file, text, open)
	if err != nil {
		return nil, err
	}
	return t.Vary(changes)
}

// Tree is the file of a profile, to read it with other parameters. Any number of
// goroutines may use it.
type Tree struct {
	file string
	text []byte
	open func(name string) ([]byte, error)
	root *yaml.Node
}

// ReadTree is the tree of a profile's file, which [ReadProfile] has found right.
func ReadTree(file string, text []byte, open func(name string) ([]byte, error)) (*Tree, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(doc.Content) != 1 {
		return nil, fmt.Errorf("%s: the document is empty", file)
	}
	return &Tree{file: file, text: text, open: open, root: doc.Content[0]}, nil
}

// Vary is [Vary] of the tree's file.
func (t *Tree) Vary(changes []Change) (*Profile, error) {
	nodes := 0
	root, err := expanded(t.root, &nodes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.file, err)
	}
	emulation := child(root, "emulation")
	if emulation == nil && len(changes) > 0 {
		return nil, &ChangeError{Path: changes[0].Path, Err: errors.New("the profile has no emulation section to change")}
	}
	for i, c := range changes {
		if err := change(emulation, c, changedLine(i)); err != nil {
			return nil, &ChangeError{Index: i, Path: c.Path, Err: err}
		}
	}
	p, err := readProfile(yamldoc.FromTree(t.file, root), t.text, t.open)
	var problems yamldoc.Problems
	if !errors.As(err, &problems) {
		return p, err
	}
	for i, c := range changes {
		for _, p := range problems {
			if p.Line == changedLine(i) {
				return nil, &ChangeError{Index: i, Path: c.Path, Value: true, Err: errors.New(p.Message)}
			}
		}
	}
	// What was changed does not go with something that was not.
	return nil, &ChangeError{Path: changes[0].Path, Value: true, Err: errors.New(problems[0].Message)}
}

// changedLine is the line of the value of a change: no line of a file, so that a
// problem with the value is told from one with the file.
func changedLine(index int) int { return -1 - index }

// maxVaryNodes bounds the tree that aliases may expand a small file into.
const maxVaryNodes = 200_000

// expanded is a copy of a tree with a copy in the place of every alias: changing
// one parameter changes no other.
func expanded(n *yaml.Node, nodes *int) (*yaml.Node, error) {
	if *nodes++; *nodes > maxVaryNodes {
		return nil, errors.New("the document is too large, or refers to itself by an alias")
	}
	if n.Kind == yaml.AliasNode {
		return expanded(n.Alias, nodes)
	}
	out := *n
	out.Anchor, out.Content = "", make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		own, err := expanded(c, nodes)
		if err != nil {
			return nil, err
		}
		out.Content[i] = own
	}
	return &out, nil
}

func child(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func keys(n *yaml.Node) (out []string) {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if k := n.Content[i].Value; k != "source" {
			out = append(out, k)
		}
	}
	return out
}

func change(at *yaml.Node, c Change, line int) error {
	parts := strings.Split(c.Path, ".")
	for i, part := range parts {
		name, index, err := indexed(part)
		if err != nil {
			return err
		}
		next := child(at, name)
		if next == nil {
			// A parameter that has a default may be absent; the section it belongs to may not.
			if i == 0 || i < len(parts)-1 || index >= 0 || at.Kind != yaml.MappingNode {
				return fmt.Errorf("the profile's emulation has no %s; there are %s", strings.Join(parts[:i+1], "."), strings.Join(keys(at), ", "))
			}
			next = &yaml.Node{Kind: yaml.ScalarNode}
			at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, next)
		}
		if index >= 0 {
			if next.Kind != yaml.SequenceNode || index >= len(next.Content) {
				return fmt.Errorf("the profile's emulation has no %s", strings.Join(parts[:i+1], "."))
			}
			next = next.Content[index]
		}
		at = next
	}
	if v := child(at, "value"); v != nil {
		at = v
	}
	if at.Kind != yaml.ScalarNode {
		return fmt.Errorf("is not a single value; it has %s", strings.Join(keys(at), ", "))
	}
	*at = yaml.Node{Kind: yaml.ScalarNode, Value: c.Value, Line: line}
	return nil
}

// indexed splits "parts[1]"; the index is -1 where there is none.
func indexed(s string) (name string, index int, err error) {
	name, rest, ok := strings.Cut(s, "[")
	if !ok {
		return s, -1, nil
	}
	num, ok := strings.CutSuffix(rest, "]")
	index, err = strconv.Atoi(num)
	if !ok || err != nil || index < 0 || slices.Contains([]string{"", "-"}, name) {
		return "", -1, fmt.Errorf("%q, expected a name and an index such as parts[0]", s)
	}
	return name, index, nil
}
