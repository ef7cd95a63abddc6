package uml

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is a downloaded package.
type source struct {
	file    string
	pkg     string
	version string
	note    string
}

// mirror is where Debian's packages come from on this machine.
type mirror struct {
	uri     string
	keyring string // that signs it; empty: apt's own
}

const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// systemMirror is the first Debian mirror of the system's own lists.
func systemMirror(root string) (mirror, error) {
	files := []string{filepath.Join(root, "etc/apt/sources.list")}
	for _, pattern := range []string{"*.list", "*.sources"} {
		more, err := filepath.Glob(filepath.Join(root, "etc/apt/sources.list.d", pattern))
		if err != nil {
			return mirror{}, err
		}
		files = append(files, more...)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return mirror{}, fmt.Errorf("the system's package lists: %w", err)
		}
		read := oneLineSources
		if strings.HasSuffix(file, ".sources") {
			read = deb822Sources
		}
		for _, m := range read(b) {
			if debianURI.MatchString(m.uri) {
				return m, nil
			}
		}
	}
	return mirror{}, errors.New("the system's package lists in /etc/apt name no Debian mirror, from which the guest kernel's source package would come")
}

// debianURI reports whether a URI is that of Debian's own archive, and not of its
// security archive or another one.
var debianURI = regexp.MustCompile(`^(https?|mirror\+https?|ftp|file|copy)://?.*/debian/?$`)

// oneLineSources reads sources.list(5), one line a source.
func oneLineSources(b []byte) []mirror {
	var out []mirror
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		text, _, _ := strings.Cut(s.Text(), "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(text), "deb ")
		if !ok {
			continue
		}
		m := mirror{}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			options, after, closed := strings.Cut(rest[1:], "]")
			if !closed {
				continue
			}
			for _, o := range strings.Fields(options) {
				if v, ok := strings.CutPrefix(o, "signed-by="); ok {
					m.keyring = v
				}
			}
			rest = after
		}
		f := strings.Fields(rest)
		if len(f) < 2 {
			continue
		}
		m.uri = f[0]
		out = append(out, m)
	}
	return out
}

// deb822Sources reads the paragraphs of a .sources file.
func deb822Sources(b []byte) []mirror {
	var out []mirror
	fields, key := map[string]string{}, ""
	flush := func() {
		types := strings.Fields(fields["types"])
		if slices.Contains(types, "deb") && !strings.EqualFold(strings.TrimSpace(fields["enabled"]), "no") {
			keyring := strings.TrimSpace(fields["signed-by"])
			if !strings.HasPrefix(keyring, "/") || strings.ContainsAny(keyring, " \n") {
				keyring = "" // a key within the file, or several
			}
			for _, uri := range strings.Fields(fields["uris"]) {
				out = append(out, mirror{uri: uri, keyring: keyring})
			}
		}
		fields, key = map[string]string{}, ""
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		line := s.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			if key != "" {
				fields[key] += "\n" + strings.TrimSpace(line)
			}
		default:
			name, value, ok := strings.Cut(line, ":")
			if ok {
				key = strings.ToLower(strings.TrimSpace(name))
				fields[key] = strings.TrimSpace(value)
			}
		}
	}
	flush()
	return out
}

// apt runs apt with lists of its own, so that the system's are not touched. It
// trusts what the system's keyring has signed and nothing else.
type apt struct {
	dir  string
	args []string
}

func newApt(dir string, m mirror, suites []string) (*apt, error) {
	if m.keyring == "" {
		m.keyring = debianKeyring
	}
	if _, err := os.Stat(m.keyring); err != nil {
		return nil, fmt.Errorf("keyring of Debian: %w: install the package debian-archive-keyring", err)
	}
	var text strings.Builder
	for _, s := range suites {
		fmt.Fprintf(&text, "deb [signed-by=%s] %s %s main\n", m.keyring, m.uri, s)
	}
	list := filepath.Join(dir, "sources.list")
	if err := os.WriteFile(list, []byte(text.String()), 0o644); err != nil {
		return nil, err
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	return &apt{dir: dir, args: []string{
		"-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=-",
		"-o", "Dir::State::lists=" + filepath.Join(dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(dir, "cache"),
		"-o", "APT::Get::AllowUnauthenticated=false", "-o", "Acquire::AllowInsecureRepositories=false",
		"-o", "Acquire::Languages=none", "-o", "Acquire::Retries=3",
		// The folder is its owner's alone, so apt's own user could not write there.
		"-o", "APT::Sandbox::User=",
	}}, nil
}

func (a *apt) run(ctx context.Context, program string, args ...string) (string, error) {
	return runCommand(ctx, a.dir, nil, nil, program, append(slices.Clone(a.args), args...)...)
}

// candidate is an available package.
type candidate struct{ pkg, version string }

// candidates returns every version of every kernel source package.
func (a *apt) candidates(ctx context.Context) ([]candidate, error) {
	names, err := a.run(ctx, "apt-cache", "pkgnames", "linux-source-")
	if err != nil {
		return nil, err
	}
	var list []string
	for _, n := range strings.Fields(names) {
		if kernelRelease(n) != [2]int{} {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	said, err := a.run(ctx, "apt-cache", append([]string{"madison"}, list...)...)
	if err != nil {
		return nil, err
	}
	return madison(said), nil
}

// madison reads "package | version | where" lines.
func madison(said string) []candidate {
	var out []candidate
	for l := range strings.Lines(said) {
		f := strings.Split(l, "|")
		if len(f) != 3 || strings.HasSuffix(strings.TrimSpace(f[2]), "Sources") {
			continue
		}
		c := candidate{pkg: strings.TrimSpace(f[0]), version: strings.TrimSpace(f[1])}
		if kernelRelease(c.pkg) != [2]int{} && c.version != "" && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

var releaseForm = regexp.MustCompile(`^linux-source-(\d{1,3})\.(\d{1,3})$`)

// kernelRelease is major and minor of "linux-source-7.2"; zero for other names.
func kernelRelease(pkg string) (r [2]int) {
	m := releaseForm.FindStringSubmatch(pkg)
	if m == nil {
		return r
	}
	for i := range r {
		r[i], _ = strconv.Atoi(m[i+1]) // three digits always fit
	}
	return r
}

// oldest is the first release with TCP_RTO_MAX_MS.
var oldest = [2]int{6, 15}

// choose picks the pinned version, else the newest of the pinned release, else
// the newest of all that are new enough. newer orders two versions as dpkg does.
func choose(all []candidate, newer func(a, b string) int) (c candidate, note string, ok bool) {
	pinned := candidate{sourcePackage, sourceVersion}
	if slices.Contains(all, pinned) {
		return pinned, "", true
	}
	for _, c := range all {
		if slices.Compare(slicesOf(kernelRelease(c.pkg)), slicesOf(oldest)) >= 0 {
			pinned = candidate{}
			break
		}
	}
	if pinned != (candidate{}) {
		return candidate{}, "", false
	}
	best := slices.MaxFunc(all, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(truth(a.pkg == sourcePackage), truth(b.pkg == sourcePackage)),
			slices.Compare(slicesOf(kernelRelease(a.pkg)), slicesOf(kernelRelease(b.pkg))),
			newer(a.version, b.version),
		)
	})
	return best, fmt.Sprintf("the mirror no longer has %s %s, so the guest kernel is of %s %s: measured values may differ from those of other installations",
		sourcePackage, sourceVersion, best.pkg, best.version), true
}

func slicesOf(r [2]int) []int { return r[:] }

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fetch downloads the source package. The pinned version's own suite is asked
// first; the indices of the others are large.
func (b *build) fetch(ctx context.Context) (source, error) {
	m, err := systemMirror("/")
	if err != nil {
		return source{}, err
	}
	dir := filepath.Join(b.dir, "apt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return source{}, err
	}
	dpkgOrder := func(x, y string) int {
		if _, err := runCommand(ctx, dir, nil, nil, "dpkg", "--compare-versions", x, "gt", y); err == nil {
			return 1
		}
		return -1
	}
	var all []candidate
	for _, suites := range [][]string{{"trixie-backports"}, {"trixie-backports", "forky", "sid"}} {
		b.Progress("package index", 0)
		a, err := newApt(dir, m, suites)
		if err != nil {
			return source{}, err
		}
		if said, err := a.run(ctx, "apt-get", "update", "-q"); err != nil {
			return source{}, fmt.Errorf("package index of %s: %w", m.uri, errors.Join(err, errors.New(lastLines(said, 2))))
		}
		if all, err = a.candidates(ctx); err != nil {
			return source{}, err
		}
		c, note, ok := choose(all, dpkgOrder)
		if !ok || note != "" && c.pkg != sourcePackage && len(suites) == 1 {
			continue // the other suites may have the release
		}
		b.Progress("download", 0)
		if _, err := a.run(ctx, "apt-get", "download", "-q", c.pkg+"="+c.version); err != nil {
			return source{}, fmt.Errorf("package %s %s from %s: %w", c.pkg, c.version, m.uri, err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
		if err != nil {
			return source{}, err
		}
		if len(files) != 1 {
			return source{}, fmt.Errorf("package %s %s: %d files were downloaded, expected one", c.pkg, c.version, len(files))
		}
		b.Progress("download", 1)
		return source{file: files[0], pkg: c.pkg, version: c.version, note: note}, nil
	}
	return source{}, fmt.Errorf("the mirror %s has no kernel source package: expected %s %s, or any linux-source-* of release %d.%d or newer (trixie-backports, forky, sid)",
		m.uri, sourcePackage, sourceVersion, oldest[0], oldest[1])
}
