package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Repository is where Debian packages come from.
type Repository struct {
	Suite    string // "bookworm"
	Mirror   string // "http://deb.debian.org/debian"
	Security string // mirror of security updates; empty: none
}

// Suites that packages can be fetched of.
var Suites = []string{"bookworm", "trixie"}

// keyring verifies the signatures of package lists.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// ReadPackages reads the sets of packages that the playbooks install, by name.
func ReadPackages(playbooks fs.FS) (map[string][]string, error) {
	const file = "packages.yml"
	b, err := fs.ReadFile(playbooks, file)
	if err != nil {
		return nil, fmt.Errorf("list of packages: %w", err)
	}
	var doc struct {
		Sets map[string][]string `yaml:"linktrial_packages"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("list of packages: %s: %w", file, err)
	}
	if len(doc.Sets) == 0 {
		return nil, fmt.Errorf("list of packages: %s names none", file)
	}
	return doc.Sets, nil
}

// SetNames are the names of sets, in order.
func SetNames(sets map[string][]string) []string { return sortedKeys(sets) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// fetch downloads packages with their dependencies into scrap/debian and makes a flat
// repository of them. It does not depend on what this machine has installed: apt sees
// an empty system.
func (r Repository) fetch(ctx context.Context, names []string, architecture, scrap string) ([]Package, error) {
	if !slices.Contains(Suites, r.Suite) {
		return nil, fmt.Errorf("Debian %q, expected one of %s", r.Suite, strings.Join(Suites, ", ")) //nolint:staticcheck // a name
	}
	apt := filepath.Join(scrap, "apt")
	archives := filepath.Join(apt, "cache", "archives")
	for _, d := range []string{filepath.Join(apt, "lists", "partial"), filepath.Join(archives, "partial"), filepath.Join(scrap, debianFolder)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("packages: %w", err)
		}
	}
	sources := fmt.Sprintf("deb [signed-by=%[1]s] %[2]s %[3]s main\ndeb [signed-by=%[1]s] %[2]s %[3]s-updates main\n", keyring, r.Mirror, r.Suite)
	if r.Security != "" {
		sources += fmt.Sprintf("deb [signed-by=%s] %s %s-security main\n", keyring, r.Security, r.Suite)
	}
	options := []string{
		"Dir::Etc::sourcelist=" + filepath.Join(apt, "sources.list"), "Dir::Etc::sourceparts=-",
		"Dir::Etc::preferences=/dev/null", "Dir::Etc::preferencesparts=-",
		"Dir::State=" + apt, "Dir::State::lists=" + filepath.Join(apt, "lists"), "Dir::State::status=" + filepath.Join(apt, "status"),
		"Dir::State::extended_states=" + filepath.Join(apt, "extended_states"),
		"Dir::Cache=" + filepath.Join(apt, "cache"), "Dir::Cache::archives=" + archives,
		"Debug::NoLocking=true", "APT::Architecture=" + architecture, "APT::Architectures::=" + architecture,
		"APT::Install-Recommends=false", "APT::Sandbox::User=", "Acquire::Languages=none",
	}
	for file, text := range map[string]string{"sources.list": sources, "status": ""} {
		if err := os.WriteFile(filepath.Join(apt, file), []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("packages: %w", err)
		}
	}
	var flags []string
	for _, o := range options {
		flags = append(flags, "-o", o)
	}
	for _, args := range [][]string{
		{"update", "-q", "--error-on=any"},
		append([]string{"install", "-q", "-y", "--download-only"}, names...),
	} {
		if err := command(ctx, "apt-get", append(slices.Clone(flags), args...)...); err != nil {
			return nil, fmt.Errorf("packages of Debian %s: %w", r.Suite, err)
		}
	}
	debs, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return nil, fmt.Errorf("packages of Debian %s: %w", r.Suite, err)
	}
	if len(debs) == 0 {
		return nil, fmt.Errorf("packages of Debian %s: apt-get fetched none, expected %s", r.Suite, strings.Join(names, ", "))
	}
	return index(ctx, debs, filepath.Join(scrap, debianFolder))
}

// index moves packages into a folder and writes the list that apt reads.
func index(ctx context.Context, debs []string, dir string) ([]Package, error) {
	var out []Package
	var list bytes.Buffer
	for _, deb := range debs {
		control, err := exec.CommandContext(ctx, "dpkg-deb", "--field", deb).Output()
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", filepath.Base(deb), err)
		}
		p := Package{Name: field(control, "Package"), Version: field(control, "Version")}
		if p.Name == "" || p.Version == "" {
			return nil, fmt.Errorf("package %s has no name or no version in its control file", filepath.Base(deb))
		}
		// apt would read %3a in the name of a file as a colon.
		_, short, epoch := strings.Cut(p.Version, ":")
		if !epoch {
			short = p.Version
		}
		file := fmt.Sprintf("%s_%s_%s.deb", p.Name, short, field(control, "Architecture"))
		p.File = path.Join(debianFolder, file)
		to := filepath.Join(dir, file)
		if err := os.Rename(deb, to); err != nil {
			return nil, fmt.Errorf("packages: %w", err)
		}
		digest, size, err := digestOf(to)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&list, "%s\nFilename: ./%s\nSize: %d\nSHA256: %s\n\n", bytes.TrimRight(control, "\n"), file, size, digest)
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Package) int { return strings.Compare(a.File, b.File) })
	if err := os.WriteFile(filepath.Join(dir, "Packages"), list.Bytes(), 0o644); err != nil {
		return nil, fmt.Errorf("packages: %w", err)
	}
	return out, nil
}

// field is a field of one line of a control file (deb-control(5)).
func field(control []byte, name string) string {
	for line := range bytes.Lines(control) {
		if v, ok := bytes.CutPrefix(line, []byte(name+": ")); ok {
			return strings.TrimSpace(string(v))
		}
	}
	return ""
}

func digestOf(file string) (string, int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, fmt.Errorf("packages: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return "", 0, fmt.Errorf("packages: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

// command runs a program; the error has its error output.
func command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is not installed: bundles are made on Debian", name)
	}
	var messages []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "E:") || strings.HasPrefix(line, "Error") {
			messages = append(messages, strings.TrimSpace(line))
		}
	}
	if len(messages) == 0 {
		messages = append(messages, strings.TrimSpace(string(out)))
	}
	return fmt.Errorf("%s: %s (%w)", name, strings.Join(messages, "; "), err)
}
