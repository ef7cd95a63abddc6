package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// Files of this module, by their paths in it.
const (
	policyFile = "tools/supply/policy.txt"
	listFile   = "licences/third-party.txt"
	textsFile  = "licences/texts.txt"
)

//go:embed policy.txt
var policyText string

// policy is which licences dependencies may have.
type policy struct {
	allowed map[string]bool
	stated  map[string]string // licences that a person has read, by dependency
}

// parsePolicy reads lines "allow LICENCE" and "is KIND NAME LICENCE".
func parsePolicy(text string) (policy, error) {
	p := policy{map[string]bool{}, map[string]string{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case len(f) == 2 && f[0] == "allow":
			p.allowed[f[1]] = true
		case len(f) >= 4 && f[0] == "is":
			p.stated[f[1]+" "+f[2]] = strings.Join(f[3:], " ")
		default:
			return p, fmt.Errorf("%s:%d: expected \"allow LICENCE\" or \"is KIND NAME LICENCE\", found %q", policyFile, n, strings.TrimSpace(line))
		}
	}
	return p, nil
}

// check returns why a dependency may not be used under its licence.
func (p policy) check(d dependency, licence string) error {
	if licence == "" {
		return fmt.Errorf("%s %s: its licence is not known; read it, and add \"is %s LICENCE\" to %s", d, d.version, d, policyFile)
	}
	if !p.permits(licence) {
		return fmt.Errorf("%s %s: its licence is %s, which %s does not allow", d, d.version, licence, policyFile)
	}
	return nil
}

// permits reports whether an SPDX expression is allowed: one side of each OR, and both
// sides of each AND. In the expressions of packages an OR is outermost, or in brackets.
func (p policy) permits(expression string) bool {
	expression = strings.TrimSpace(expression)
	if parts := splitOutside(expression, " OR "); len(parts) > 1 {
		return slices.ContainsFunc(parts, p.permits)
	}
	if parts := splitOutside(expression, " AND "); len(parts) > 1 {
		return !slices.ContainsFunc(parts, func(s string) bool { return !p.permits(s) })
	}
	if inner, ok := strings.CutPrefix(expression, "("); ok && strings.HasSuffix(inner, ")") {
		return p.permits(strings.TrimSuffix(inner, ")"))
	}
	return p.allowed[expression]
}

// splitOutside splits a text at a separator that is in no brackets.
func splitOutside(s, by string) []string {
	var out []string
	depth, from := 0, 0
	for i := range len(s) {
		switch {
		case s[i] == '(':
			depth++
		case s[i] == ')':
			depth--
		case depth == 0 && strings.HasPrefix(s[i:], by):
			out = append(out, s[from:i])
			from = i + len(by)
		}
	}
	return append(out, s[from:])
}

// licenceName are the names of files that have a licence, noticeName of those that have to
// go along with it.
var (
	licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|copyright)([._-].*)?$`)
	noticeName  = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|copyright|notice|patents)([._-].*)?$`)
)

// loaded is the classifier, which takes a second to load.
var loaded = sync.OnceValues(assets.DefaultClassifier)

// least confidence with which a text counts as the licence that it is most like. Names and
// years differ; a changed condition should not pass.
const leastConfidence = 0.9

// licenceIn returns the licences of the texts in folders, as an expression; empty: none is
// known.
func licenceIn(dirs []string) (string, error) {
	c, err := loaded()
	if err != nil {
		return "", err
	}
	texts, err := textsIn(dirs, licenceName)
	if err != nil {
		return "", err
	}
	var names []string
	for _, t := range texts {
		found := namesIn(c, t)
		if len(found) == 0 {
			return "", nil // one text that nobody knows is enough
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " AND "), nil
}

// namesIn returns the licences in a text: whole, or named by the header that they ask for.
func namesIn(c *classifier.Classifier, text []byte) []string {
	var names []string
	for _, m := range c.Match(text).Matches {
		if (m.MatchType == "License" || m.MatchType == "Header") && m.Confidence >= leastConfidence {
			names = append(names, m.Name)
		}
	}
	return names
}

// textsIn returns the contents of the files of folders with such names, in their order.
func textsIn(dirs []string, names *regexp.Regexp) ([][]byte, error) {
	var out [][]byte
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() || !names.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			out = append(out, b)
		}
	}
	return out, nil
}

// licensed is a dependency with its licence.
type licensed struct {
	dependency
	licence string
}

// judged returns the licence of every dependency; the error has all that are not allowed.
func judged(p policy, all []dependency) ([]licensed, error) {
	var out []licensed
	var errs []error
	for _, d := range all {
		licence := p.stated[d.String()]
		if licence == "" {
			licence = d.licence
		}
		if licence == "" && d.kind == kindGo {
			var err error
			if licence, err = licenceIn(d.dirs); err != nil {
				return nil, fmt.Errorf("%s: %w", d, err)
			}
		}
		if err := p.check(d, licence); err != nil {
			errs = append(errs, err)
		}
		out = append(out, licensed{d, licence})
	}
	return out, errors.Join(errs...)
}

// dependencies of all programs and pages.
func dependencies(ctx context.Context, root string) ([]dependency, error) {
	all, err := goModules(ctx, root)
	if err != nil {
		return nil, err
	}
	npm, err := npmPackages(filepath.Join(root, "web"))
	if err != nil {
		return nil, err
	}
	all = append(all, npm...)
	for _, libraries := range nativeLibraries(ctx) {
		all = append(all, libraries...)
	}
	all = append(all, typesetterIn(filepath.Join(root, "bin")))
	sortDependencies(all)
	return all, nil
}

// listOf is the list as it is kept: without versions, which change with every update.
func listOf(all []licensed) []byte {
	lines := make([]string, 0, len(all))
	for _, l := range all {
		lines = append(lines, fmt.Sprintf("%-4s %-50s %s", l.kind, l.name, l.licence))
	}
	slices.Sort(lines)
	return []byte(listHead + strings.Join(slices.Compact(lines), "\n") + "\n")
}

const listHead = `# What others wrote and is in the programs and pages of Linktrial or beside them, with its
# licence.
# go: modules that are linked into programs; npm: packages that the pages are made of;
# c: libraries that drivers in C++ are linked with; py: packages for Python that programs use. The licences themselves are in
# texts.txt. Debian packages in images and bundles have theirs in their copyright files.
# Generated by go run ./tools/supply licences.
`

// textsOf is every licence text once, below the names of those whose it is.
func textsOf(all []licensed) ([]byte, error) {
	type text struct {
		body  string
		names []string
	}
	var order []string
	texts := map[string]*text{}
	var missing []string
	for _, l := range all {
		bodies, err := textsIn(l.dirs, noticeName)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.dependency, err)
		}
		if len(bodies) == 0 {
			missing = append(missing, fmt.Sprintf("%s (%s)", l.dependency, l.licence))
		}
		for _, b := range bodies {
			body := strings.TrimSpace(string(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))))
			t := texts[body]
			if t == nil {
				t = &text{body: body}
				texts[body], order = t, append(order, body)
			}
			if name := l.String(); !slices.Contains(t.names, name) {
				t.names = append(t.names, name)
			}
		}
	}
	var b strings.Builder
	b.WriteString("Licences of what others wrote and is in the programs and pages of Linktrial.\nGenerated by go run ./tools/supply licences.\n")
	if len(missing) > 0 {
		slices.Sort(missing)
		fmt.Fprintf(&b, "\nPackages that come without a text of their licence:\n%s\n", strings.Join(slices.Compact(missing), "\n"))
	}
	for _, key := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n%[1]s\n\n%[3]s\n", strings.Repeat("=", 80), strings.Join(texts[key].names, "\n"), texts[key].body)
	}
	return []byte(b.String()), nil
}

// licences checks all dependencies, and writes or compares the list.
func licences(ctx context.Context, root string, check bool) error {
	all, err := dependencies(ctx, root)
	if err != nil {
		return err
	}
	p, err := parsePolicy(policyText)
	if err != nil {
		return err
	}
	judgedAll, err := judged(p, all)
	if err != nil {
		return err
	}
	list := listOf(judgedAll)
	if check {
		return compareList(root, list)
	}
	texts, err := textsOf(judgedAll)
	if err != nil {
		return fmt.Errorf("%w (make build installs what is missing)", err)
	}
	for file, b := range map[string][]byte{listFile: list, textsFile: texts} {
		if err := os.WriteFile(filepath.Join(root, file), b, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%s: %d dependencies, all with allowed licences\n", listFile, len(judgedAll))
	return nil
}

// compareList returns how the list that is kept differs.
func compareList(root string, want []byte) error {
	got, err := os.ReadFile(filepath.Join(root, listFile))
	if err != nil {
		return err
	}
	lines := func(b []byte) []string { return strings.Split(strings.TrimSpace(string(b)), "\n") }
	var diff []string
	for _, l := range lines(want) {
		if !slices.Contains(lines(got), l) {
			diff = append(diff, "+ "+l)
		}
	}
	for _, l := range lines(got) {
		if !slices.Contains(lines(want), l) {
			diff = append(diff, "- "+l)
		}
	}
	if len(diff) > 0 {
		return fmt.Errorf("%s is not that of the dependencies: go run ./tools/supply licences writes it\n%s", listFile, strings.Join(diff, "\n"))
	}
	return nil
}
