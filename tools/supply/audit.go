package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// govulncheck finds known vulnerabilities in what a program calls.
const govulncheck = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"

// vulnerable is how govulncheck exits where a program has the code of a known vulnerability.
const vulnerable = 3

// How a check ended.
const (
	inOrder    = "in order"
	found      = "FOUND"
	notChecked = "not checked"
)

// finding is the result of one check.
type finding struct{ what, result, detail string }

// audit makes every check, and prints a table. The error says that something was found.
func audit(ctx context.Context, root, programs string) error {
	checks := []func(context.Context, string, string) finding{modulesUnchanged, licencesAllowed, lockComplete, goVulnerabilities, npmVulnerabilities, npmSignatures, debianVulnerabilities}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tRESULT\tDETAIL")
	bad, open := 0, 0
	for _, check := range checks {
		limited, cancel := context.WithTimeout(ctx, 10*time.Minute)
		f := check(limited, root, programs)
		cancel()
		switch f.result {
		case found:
			bad++
		case notChecked:
			open++
		}
		lines := strings.Split(strings.TrimSpace(f.detail), "\n")
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.what, f.result, lines[0])
		for _, l := range lines[1:] {
			fmt.Fprintf(w, "\t\t%s\n", l)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if open > 0 {
		fmt.Printf("%d of %d checks could not be made here\n", open, len(checks))
	}
	if bad > 0 {
		return fmt.Errorf("%d checks found something", bad)
	}
	return nil
}

// modulesUnchanged compares the modules on this machine with go.sum.
func modulesUnchanged(ctx context.Context, root, _ string) finding {
	f := finding{what: "Go modules are those of go.sum"}
	out, err := output(ctx, root, "go", "mod", "verify")
	if err != nil {
		return f.failed(err)
	}
	f.result, f.detail = inOrder, strings.TrimSpace(string(out))
	return f
}

func (f finding) failed(err error) finding {
	f.result, f.detail = found, err.Error()
	return f
}

func (f finding) notChecked(why string) finding {
	f.result, f.detail = notChecked, why
	return f
}

// licencesAllowed holds every dependency against the policy.
func licencesAllowed(ctx context.Context, root, _ string) finding {
	f := finding{what: "licences are allowed, and listed"}
	if err := licences(ctx, root, true); err != nil {
		return f.failed(err)
	}
	list, err := os.ReadFile(filepath.Join(root, listFile))
	if err != nil {
		return f.failed(err)
	}
	f.result, f.detail = inOrder, fmt.Sprintf("%d dependencies", len(parseList(list)))
	return f
}

// lockComplete checks that every npm package has a checksum, and that all come from one place.
func lockComplete(_ context.Context, root, _ string) finding {
	f := finding{what: "npm packages have checksums"}
	n := 0
	var bad []string
	for _, dir := range []string{"web", "tools"} {
		b, err := os.ReadFile(filepath.Join(root, dir, "package-lock.json"))
		if err != nil {
			return f.failed(err)
		}
		more, wrong, err := unpinned(b)
		if err != nil {
			return f.failed(fmt.Errorf("%s: %w", dir, err))
		}
		n += more
		bad = append(bad, wrong...)
	}
	if len(bad) > 0 {
		return f.failed(fmt.Errorf("without a SHA-512, without https or from another place than the others: %s", strings.Join(bad, ", ")))
	}
	f.result, f.detail = inOrder, fmt.Sprintf("%d packages; npm ci compares them when it installs", n)
	return f
}

// unpinned lists the packages of a lock without a checksum, or from another place than the
// others that name one.
func unpinned(lock []byte) (n int, bad []string, err error) {
	var doc struct {
		Packages map[string]struct {
			Resolved, Integrity string
			Link                bool
		}
	}
	if err := json.Unmarshal(lock, &doc); err != nil {
		return 0, nil, err
	}
	most := "" // the host of most packages
	of := map[string]int{}
	for _, p := range doc.Packages {
		if u, err := url.Parse(p.Resolved); err == nil && u.Scheme == "https" {
			if of[u.Host]++; of[u.Host] > of[most] {
				most = u.Host
			}
		}
	}
	for name, p := range doc.Packages {
		if name == "" || p.Link {
			continue
		}
		n++
		// A package without a place comes from the registry that npm is configured with.
		elsewhere := p.Resolved != "" && !strings.HasPrefix(p.Resolved, "https://"+most+"/")
		if !strings.HasPrefix(p.Integrity, "sha512-") || elsewhere {
			bad = append(bad, name)
		}
	}
	slices.Sort(bad)
	return n, bad, nil
}

// goVulnerabilities asks Go's database, or the copy that GOVULNDB names, what is known of
// what the program calls.
func goVulnerabilities(ctx context.Context, root, programs string) finding {
	f := finding{what: "known vulnerabilities of Go modules"}
	program := filepath.Join(programs, "linktrial")
	if _, err := os.Stat(program); err != nil {
		return f.notChecked("there is no " + program + ": make build")
	}
	tool, err := output(ctx, root, filepath.Join(root, "scripts", "go-tool"), govulncheck)
	if err != nil {
		return f.notChecked(err.Error())
	}
	args := []string{"-mode", "binary"}
	if db := os.Getenv("GOVULNDB"); db != "" {
		args = append(args, "-db", db)
	}
	out, err := output(ctx, root, strings.TrimSpace(string(tool)), append(args, program)...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == vulnerable {
		return f.failed(errors.New(strings.TrimSpace(string(out))))
	}
	if err != nil {
		return f.notChecked("the database could not be asked (GOVULNDB can name a copy of it): " + lastLine(err.Error()))
	}
	f.result, f.detail = inOrder, "nothing is known of what linktrial calls"
	return f
}

// npmVulnerabilities asks npm's registry what is known of what the pages are made of.
func npmVulnerabilities(ctx context.Context, root, _ string) finding {
	f := finding{what: "known vulnerabilities of npm packages in the pages"}
	cmd := exec.CommandContext(ctx, "npm", "audit", "--omit=dev", "--json", "--package-lock-only")
	cmd.Dir = filepath.Join(root, "web")
	out, err := cmd.Output() // it fails where it finds something, too
	if err != nil && len(out) == 0 {
		return f.notChecked("npm audit: " + err.Error())
	}
	var doc struct {
		Message         string
		Error           *struct{ Summary string }
		Vulnerabilities map[string]struct{ Severity, Range string }
		Metadata        *struct{ Dependencies struct{ Prod int } }
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return f.notChecked("npm audit: " + err.Error())
	}
	if doc.Metadata == nil {
		return f.notChecked("the registry could not be asked: " + lastLine(doc.Message))
	}
	var bad []string
	for name, v := range doc.Vulnerabilities {
		bad = append(bad, fmt.Sprintf("%s %s: %s", name, v.Range, v.Severity))
	}
	if slices.Sort(bad); len(bad) > 0 {
		return f.failed(errors.New(strings.Join(bad, "\n")))
	}
	f.result, f.detail = inOrder, fmt.Sprintf("nothing is known of %d packages", doc.Metadata.Dependencies.Prod)
	return f
}

var signed = regexp.MustCompile(`(?m)^(\d+) packages? ha(s|ve) (a )?verified registry signatures?$`)

// npmSignatures has npm verify the registry's signatures of what is installed.
func npmSignatures(ctx context.Context, root, _ string) finding {
	f := finding{what: "npm packages are signed by the registry"}
	if _, err := os.Stat(filepath.Join(root, "web", "node_modules")); err != nil {
		return f.notChecked("no packages are installed: make build")
	}
	cmd := exec.CommandContext(ctx, "npm", "audit", "signatures")
	cmd.Dir = filepath.Join(root, "web")
	out, err := cmd.CombinedOutput()
	switch m := signed.FindSubmatch(out); {
	case bytes.Contains(out, []byte("invalid registry signature")) || bytes.Contains(out, []byte("might have been tampered")):
		return f.failed(errors.New(strings.TrimSpace(string(out))))
	case err == nil && m != nil:
		f.result, f.detail = inOrder, string(m[1])+" packages"
		return f
	}
	return f.notChecked("npm audit signatures: " + lastLine(string(out)))
}

// debianVulnerabilities is what nothing here can check.
func debianVulnerabilities(context.Context, string, string) finding {
	return finding{"known vulnerabilities of Debian packages", notChecked,
		"bundles and images have the newest packages of the suite and its security updates at the time when they are made; compare their bills of materials (make sbom) with Debian's security tracker"}
}

// lastLine is the last line of a text that says something.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for _, l := range slices.Backward(lines) {
		if l = strings.TrimSpace(l); l != "" && !strings.Contains(l, "complete log of this run") {
			return l
		}
	}
	return "no reason was given"
}
