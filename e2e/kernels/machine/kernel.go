package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Kernel is an unpacked kernel package of Debian.
type Kernel struct {
	Package string // linux-image-6.12.117+deb12-cloud-amd64
	Version string // of the package
	Image   string // the kernel's file
	Modules string // folder of its modules
}

// DefaultCache is where unpacked kernels are kept: /var/cache/linktrial/kernels
// for root, ~/.cache/linktrial/kernels for others.
func DefaultCache() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/linktrial/kernels", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache of kernel packages: %w", err)
	}
	return filepath.Join(dir, "linktrial", "kernels"), nil
}

// FindKernel returns the kernel of a release ("6.1") from the cache, or
// downloads the newest one for cloud machines that the system's package lists
// have. The system's own package index is not touched, and nothing is installed.
func FindKernel(ctx context.Context, cache, release string) (*Kernel, error) {
	if k, err := cached(cache, release); k != nil || err != nil {
		return k, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("cache of kernel packages: %w", err)
	}
	work, err := os.MkdirTemp(cache, workPrefix)
	if err != nil {
		return nil, fmt.Errorf("cache of kernel packages: %w", err)
	}
	defer os.RemoveAll(work)
	pkg, err := download(ctx, work, release)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", release, err)
	}
	said, err := output(ctx, work, "dpkg-deb", "--field", filepath.Join(work, "package.deb"), "Version")
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", release, err)
	}
	unpacked := filepath.Join(work, "unpacked")
	if _, err := output(ctx, work, "dpkg-deb", "--extract", filepath.Join(work, "package.deb"), unpacked); err != nil {
		return nil, fmt.Errorf("kernel %s: unpack %s: %w", release, pkg, err)
	}
	// Whoever unpacked the same one in the meantime has the same files.
	if err := os.Rename(unpacked, filepath.Join(cache, pkg+"_"+strings.TrimSpace(said))); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("kernel %s: %w", release, err)
	}
	k, err := cached(cache, release)
	if k == nil && err == nil {
		err = fmt.Errorf("kernel %s: the package %s was unpacked, and the cache %s does not have it", release, pkg, cache)
	}
	return k, err
}

const workPrefix = "download-"

// packageName is that of a kernel for cloud machines: the smallest that has
// everything, unlike the one for every machine, whose modules are four times as large.
func packageName(release string) *regexp.Regexp {
	return regexp.MustCompile(`^linux-image-` + regexp.QuoteMeta(release) + `\.[0-9a-z.+~-]*-?cloud-amd64$`)
}

// cached returns the newest kernel of a release in the cache; nil: there is none.
func cached(cache, release string) (*Kernel, error) {
	entries, err := os.ReadDir(cache)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cache of kernel packages: %w", err)
	}
	var names []string
	for _, e := range entries {
		if pkg, _, ok := strings.Cut(e.Name(), "_"); ok && packageName(release).MatchString(pkg) {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	name := slices.MaxFunc(names, natural)
	k := &Kernel{}
	k.Package, k.Version, _ = strings.Cut(name, "_")
	own := strings.TrimPrefix(k.Package, "linux-image-")
	k.Image = filepath.Join(cache, name, "boot", "vmlinuz-"+own)
	for _, lib := range []string{"lib", "usr/lib"} { // the second since Debian 13
		if folder := filepath.Join(cache, name, lib, "modules", own); exists(folder) {
			k.Modules = folder
		}
	}
	if !exists(k.Image) || k.Modules == "" {
		return nil, fmt.Errorf("the cached kernel %s has no image or no modules: remove this folder", filepath.Join(cache, name))
	}
	return k, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// download puts the newest kernel package of a release into work as package.deb
// and returns its name.
func download(ctx context.Context, work, release string) (string, error) {
	args := []string{
		"-o", "Dir::State::lists=" + filepath.Join(work, "lists"), "-o", "Dir::Cache=" + filepath.Join(work, "cache"),
		"-o", "Acquire::Languages=none", "-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=",
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(work, d), 0o755); err != nil {
			return "", err
		}
	}
	apt := func(program string, more ...string) (string, error) {
		return output(ctx, work, program, append(slices.Clone(args), more...)...)
	}
	// One of the system's lists may be out of reach while Debian's is not.
	_, updated := apt("apt-get", "update", "-q")
	names, err := apt("apt-cache", "pkgnames", "linux-image-"+release)
	if err != nil {
		return "", err
	}
	var found []string
	for _, n := range strings.Fields(names) {
		if packageName(release).MatchString(n) {
			found = append(found, n)
		}
	}
	if len(found) == 0 {
		err := fmt.Errorf("the system's package lists (/etc/apt) have no linux-image-%s.*-cloud-amd64: of Debian 12, 6.1 is in bookworm, 6.12 in bookworm-security", release)
		return "", errors.Join(err, updated)
	}
	pkg := slices.MaxFunc(found, natural)
	if _, err := apt("apt-get", "download", "-q", pkg); err != nil {
		return "", errors.Join(err, updated)
	}
	files, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil {
		return "", err
	}
	if len(files) != 1 {
		return "", fmt.Errorf("package %s: %d files were downloaded, expected one", pkg, len(files))
	}
	return pkg, os.Rename(files[0], filepath.Join(work, "package.deb"))
}

var digits = regexp.MustCompile(`[0-9]+`)

// natural orders names with numbers in them by the numbers.
func natural(a, b string) int {
	key := func(s string) string {
		return digits.ReplaceAllStringFunc(s, func(n string) string { return fmt.Sprintf("%010s", n) })
	}
	return strings.Compare(key(a), key(b))
}

// output runs a program and returns what it wrote; its error has the end of what
// it complained of.
func output(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err == nil {
		return string(out), nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return "", fmt.Errorf("%s: %w: %s", program, err, lastLines(exit.Stderr, 3))
	}
	return "", fmt.Errorf("%s: %w", program, err)
}

// lastLines returns the last n lines that are not empty, on one line.
func lastLines(b []byte, n int) string {
	var lines []string
	for l := range strings.Lines(string(b)) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
