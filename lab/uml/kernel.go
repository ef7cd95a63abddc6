package uml

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/filelock"
)

// The recipe: a configuration, patches, and files that are added to the tree.
//
//go:embed kernel
var recipe embed.FS

// Package and version of the source that the recipe was made with. 6.15 was the
// first release with TCP_RTO_MAX_MS, which the rto_max option needs.
const (
	sourcePackage = "linux-source-7.2"
	sourceVersion = "7.2.12-1~bpo13+1"
)

// Kernel is a guest kernel in the cache.
type Kernel struct {
	Path    string `json:"-"`       // of the program
	Version string `json:"version"` // of the package it was built from
	// Note is why the kernel is not of the pinned version; empty when it is.
	Note  string    `json:"note,omitempty"`
	Built time.Time `json:"built"`
}

// BuildConfig is what [BuildKernel] needs; the zero value is ready to use.
type BuildConfig struct {
	CacheDir string // empty: [DefaultCacheDir]
	Jobs     int    // compilers at a time; 0: one for each processor
	// Progress is called with what is being done and how much of it is done, 0…1.
	Progress func(stage string, share float64)
}

// ErrNoKernel reports that the cache has no kernel of this recipe.
var ErrNoKernel = errors.New("the guest kernel has not been built yet: build it with 'linktrial lab kernel'")

// DefaultCacheDir is where kernels are kept: /var/cache/linktrial/kernel for
// root, ~/.cache/linktrial/kernel for others.
func DefaultCacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/linktrial/kernel", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache of guest kernels: %w", err)
	}
	return filepath.Join(dir, "linktrial", "kernel"), nil
}

// recipeHash is the hash of everything that goes into a kernel but its source.
func recipeHash() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(recipe, "kernel", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := recipe.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(b), b)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("recipe of the guest kernel: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

const programName = "linux"

// CachedKernel finds the kernel of this recipe in the cache, or [ErrNoKernel].
// Where there are several, of other source versions, the pinned one counts,
// else the newest build.
func CachedKernel(cacheDir string) (Kernel, error) {
	if cacheDir == "" {
		var err error
		if cacheDir, err = DefaultCacheDir(); err != nil {
			return Kernel{}, err
		}
	}
	hash, err := recipeHash()
	if err != nil {
		return Kernel{}, err
	}
	files, err := filepath.Glob(filepath.Join(cacheDir, "*-"+hash, documentName))
	if err != nil {
		return Kernel{}, fmt.Errorf("cache of guest kernels: %w", err)
	}
	var found []Kernel
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return Kernel{}, fmt.Errorf("cache of guest kernels: %w", err)
		}
		k, err := parseKernel(b)
		if err != nil {
			return Kernel{}, fmt.Errorf("cache of guest kernels: %s: %w", file, err)
		}
		k.Path = filepath.Join(filepath.Dir(file), programName)
		if k.Version == sourceVersion {
			return k, nil
		}
		found = append(found, k)
	}
	if len(found) == 0 {
		return Kernel{}, ErrNoKernel
	}
	return slices.MaxFunc(found, func(a, b Kernel) int { return a.Built.Compare(b.Built) }), nil
}

func parseKernel(b []byte) (k Kernel, err error) {
	if err := json.Unmarshal(b, &k); err != nil {
		return Kernel{}, err
	}
	return k, nil
}

// neededBytes is the disk space of a build: package 170 MB, source without
// foreign architectures and most drivers 600 MB, objects 80 MB.
const neededBytes = 1200 << 20

// BuildKernel returns the guest kernel from the cache, or builds it: it
// downloads the kernel's source package with apt, which checks its signatures,
// compiles it, boots it twice to check that it does what the lab needs, and only
// then puts it into the cache. Kernels that were not booted for a month are
// deleted from there. It takes minutes, and ends with ctx. Two builds at a time
// wait for each other.
func BuildKernel(ctx context.Context, cfg BuildConfig) (Kernel, error) {
	if cfg.CacheDir == "" {
		var err error
		if cfg.CacheDir, err = DefaultCacheDir(); err != nil {
			return Kernel{}, err
		}
	}
	if cfg.Jobs <= 0 {
		cfg.Jobs = runtime.NumCPU()
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string, float64) {}
	}
	if k, err := CachedKernel(cfg.CacheDir); !errors.Is(err, ErrNoKernel) {
		return k, err
	}
	if runtime.GOARCH != "amd64" {
		return Kernel{}, fmt.Errorf("the virtual-time lab runs on amd64 machines only, and this one is %s", runtime.GOARCH)
	}
	if err := tools(); err != nil {
		return Kernel{}, err
	}
	if err := os.MkdirAll(cfg.CacheDir, 0o755); err != nil {
		return Kernel{}, fmt.Errorf("cache of guest kernels: %w", err)
	}
	release, err := lockCache(ctx, cfg.CacheDir, func() { cfg.Progress("wait for another build", 0) })
	if err != nil {
		return Kernel{}, err
	}
	defer release()
	// The process that held the lock before may have built it.
	if k, err := CachedKernel(cfg.CacheDir); !errors.Is(err, ErrNoKernel) {
		return k, err
	}
	if err := room(cfg.CacheDir); err != nil {
		return Kernel{}, err
	}
	if err := sweep(cfg.CacheDir); err != nil {
		return Kernel{}, err
	}
	dir, err := os.MkdirTemp(cfg.CacheDir, buildPrefix)
	if err != nil {
		return Kernel{}, fmt.Errorf("build the guest kernel: %w", err)
	}
	defer os.RemoveAll(dir)
	b := &build{BuildConfig: cfg, dir: dir}
	k, err := b.run(ctx)
	if err != nil {
		return Kernel{}, fmt.Errorf("build the guest kernel: %w", err)
	}
	return k, prune(cfg.CacheDir, filepath.Dir(k.Path), time.Now().Add(-keepUnused))
}

const buildPrefix = "build-"

// sweep removes what killed builds left behind. The caller holds the lock.
func sweep(cacheDir string) error {
	left, err := filepath.Glob(filepath.Join(cacheDir, buildPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("cache of guest kernels: remove what an earlier build left: %w", err)
		}
	}
	return nil
}

func room(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("cache of guest kernels: %w", err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < neededBytes {
		return fmt.Errorf("building the guest kernel needs %d MiB in %s, there are %d MiB", neededBytes>>20, dir, free>>20)
	}
	return nil
}

// lockCache waits until no other process builds in this cache.
func lockCache(ctx context.Context, dir string, waits func()) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cache of guest kernels: %w", err)
	}
	told := false
	for {
		err := filelock.TryLock(f, filelock.Exclusive)
		if err == nil {
			return func() { filelock.Release(f) }, nil
		}
		if !errors.Is(err, filelock.ErrHeld) {
			f.Close()
			return nil, fmt.Errorf("cache of guest kernels: lock: %w", err)
		}
		if !told {
			waits()
			told = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// commit moves a finished program into the cache atomically.
func commit(cacheDir, program string, k Kernel) (Kernel, error) {
	hash, err := recipeHash()
	if err != nil {
		return k, err
	}
	staged, err := os.MkdirTemp(filepath.Dir(program), "done-")
	if err != nil {
		return k, err
	}
	doc, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return k, err
	}
	if err := errors.Join(
		os.Chmod(staged, 0o755),
		os.Rename(program, filepath.Join(staged, programName)),
		os.WriteFile(filepath.Join(staged, documentName), append(doc, '\n'), 0o644),
	); err != nil {
		return k, err
	}
	home := filepath.Join(cacheDir, strings.ReplaceAll(k.Version, "/", "_")+"-"+hash)
	if err := os.Rename(staged, home); err != nil {
		return k, err
	}
	k.Path = filepath.Join(home, programName)
	return k, nil
}
