package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"linktrial/internal/driverfolder"
	"linktrial/internal/scratch"
)

//go:embed README.txt
var readme []byte

// Config lists what goes into a bundle.
type Config struct {
	Out     string // path of the archive
	Program string // path
	Drivers string // folder with a folder for each driver; can be a list of folders, as PATH has it
	Version string // of linktrial
	// Folders that are packed as they are, by their name in the bundle.
	Folders map[string]fs.FS
	// Debian packages, which are packed with their dependencies; empty: none.
	Packages []string
	Debian   Repository
	Images   []string // as docker knows them
	// Modified is the modification time of every file in the archive, so that the
	// same files give the same bundle.
	Modified time.Time
	// Key signs the archive and the list of its packages; nil: nothing is signed.
	Key    *Key
	Logger *slog.Logger
}

// Create writes a bundle. Where it fails it leaves no file.
func Create(ctx context.Context, cfg Config) (m Manifest, err error) {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m = Manifest{Format: Format, Version: cfg.Version}
	if m.Architecture, err = Architecture(cfg.Program); err != nil {
		return m, err
	}
	if m.Drivers, err = drivers(cfg.Drivers); err != nil {
		return m, err
	}
	// Opened before packages and images are fetched, which takes minutes.
	part, f, err := begin(cfg.Out)
	if err != nil {
		return m, err
	}
	defer func() {
		if f.Close(); err != nil {
			_ = os.Remove(part) // the first error is the one to tell
		}
	}()
	folder, err := scratch.New("linktrial-bundle-")
	if err != nil {
		return m, fmt.Errorf("bundle: %w", err)
	}
	defer func() { _ = folder.Remove() }() // what stays, the next bundle removes
	scrap := folder.Path
	if len(cfg.Packages) > 0 {
		log.Info("packages are fetched", "suite", cfg.Debian.Suite, "mirror", cfg.Debian.Mirror)
		m.Debian = cfg.Debian.Suite
		if m.Packages, err = cfg.Debian.fetch(ctx, cfg.Packages, m.Architecture, scrap); err != nil {
			return m, err
		}
		if err = signArchive(filepath.Join(scrap, debianFolder), cfg.Key, m.Debian, m.Architecture, cfg.Modified); err != nil {
			return m, err
		}
	}
	if m.Images, err = saveImages(ctx, cfg.Images, scrap); err != nil {
		return m, err
	}
	if err = write(f, cfg, m, scrap); err != nil {
		return m, err
	}
	if err = f.Sync(); err != nil {
		return m, fmt.Errorf("bundle: %w", err)
	}
	// A signature of an earlier archive of this name would not be that of this one.
	if err = os.Remove(cfg.Out + SignatureSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("bundle: %w", err)
	}
	if err = os.Rename(part, cfg.Out); err != nil {
		return m, fmt.Errorf("bundle: %w", err)
	}
	if cfg.Key != nil {
		if _, err = cfg.Key.Sign(cfg.Out); err != nil {
			return m, fmt.Errorf("bundle: signature: %w", err)
		}
	}
	return m, nil
}

// begin opens the file that becomes the archive out when it is complete.
func begin(out string) (part string, f *os.File, err error) {
	if st, err := os.Stat(out); err == nil && !st.Mode().IsRegular() {
		return "", nil, fmt.Errorf("bundle: %s is there and no regular file, expected the name of the archive to write", out)
	}
	part = out + ".part"
	if f, err = os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644); err != nil {
		return "", nil, fmt.Errorf("bundle: %w", err)
	}
	return part, f, nil
}

// Architecture returns the architecture that a program was built for, in Debian's
// names.
func Architecture(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		var missing *fs.PathError
		if errors.As(err, &missing) {
			return "", fmt.Errorf("program for the bundle: %w", err)
		}
		return "", fmt.Errorf("%s is no Linux program: %w", program, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	}
	return "", fmt.Errorf("%s was built for %s, expected x86_64 or aarch64", program, f.Machine)
}

// drivers lists the drivers of a list of folders.
func drivers(list string) ([]string, error) {
	names, err := driverfolder.Names(list)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("there is no driver in %s, expected folders with a driver.yaml", driverfolder.Shown(list))
	}
	return names, err
}

// write streams the archive.
func write(out io.Writer, cfg Config, m Manifest, scrap string) error {
	z := gzip.NewWriter(out)
	a := &archive{t: tar.NewWriter(z), modified: cfg.Modified}
	if err := a.bytes("README.txt", readme); err != nil {
		return err
	}
	doc, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if err := a.bytes(manifestFile, append(doc, '\n')); err != nil {
		return err
	}
	if err := a.file(programFile, cfg.Program, 0o755); err != nil {
		return err
	}
	for _, d := range m.Drivers {
		dir, _ := driverfolder.Find(cfg.Drivers, d)
		if err := a.tree(path.Join(driversFolder, d), os.DirFS(dir)); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(cfg.Folders) {
		if err := a.tree(name, cfg.Folders[name]); err != nil {
			return err
		}
	}
	for _, dir := range []string{debianFolder, imagesFolder} {
		if _, err := os.Stat(filepath.Join(scrap, dir)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := a.tree(dir, os.DirFS(filepath.Join(scrap, dir))); err != nil {
			return err
		}
	}
	if err := a.bytes(checksumsFile, formatSums(a.sums)); err != nil {
		return err
	}
	if err := a.t.Close(); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// archive writes files and records their checksums.
type archive struct {
	t        *tar.Writer
	modified time.Time
	sums     []sum
}

func (a *archive) bytes(name string, b []byte) error {
	return a.add(name, 0o644, bytes.NewReader(b), int64(len(b)))
}

func (a *archive) file(name, from string, mode fs.FileMode) error {
	f, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return a.add(name, mode, f, st.Size())
}

// tree adds the files of a folder. Links are an error: their targets may not exist on
// the machine that unpacks them.
func (a *archive) tree(name string, files fs.FS) error {
	return fs.WalkDir(files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("bundle: %s: %w", name, err)
		}
		if d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("bundle: %s: %w", name, err)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("bundle: %s/%s is neither a file nor a folder", name, p)
		}
		mode := fs.FileMode(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		f, err := files.Open(p)
		if err != nil {
			return fmt.Errorf("bundle: %s: %w", name, err)
		}
		defer func() { _ = f.Close() }() // it was only read
		return a.add(path.Join(name, p), mode, f, info.Size())
	})
}

// add writes one file.
func (a *archive) add(name string, mode fs.FileMode, from io.Reader, size int64) error {
	if !clean(name) || strings.Contains(name, "  ") {
		return fmt.Errorf("bundle: a file cannot be called %q", name)
	}
	err := a.t.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: path.Join(folder, name), Size: size, Mode: int64(mode),
		ModTime: a.modified.Truncate(time.Second), Format: tar.FormatPAX,
	})
	if err != nil {
		return fmt.Errorf("bundle: %s: %w", name, err)
	}
	digest := sha256.New()
	n, err := io.Copy(io.MultiWriter(a.t, digest), from)
	if err != nil {
		return fmt.Errorf("bundle: %s: %w", name, err)
	}
	if n != size {
		return fmt.Errorf("bundle: %s changed while it was packed", name)
	}
	if name != checksumsFile {
		a.sums = append(a.sums, sum{hex.EncodeToString(digest.Sum(nil)), name})
	}
	return nil
}
