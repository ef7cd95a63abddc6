// Package driverdigest identifies a protocol driver by its files: those that its
// manifest lists, or all in its folder. The orchestrator and the agents compute
// the digest with the same function: two equal digests mean the same driver.
// Comes in: a driver's folder. Goes out: a [Digest].
package driverdigest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"linktrial/internal/driverfolder"
)

// Digest names a driver: "sha256:" and 64 hexadecimal digits for a folder,
// "image:sha256:" and 64 for a container image by its identity.
type Digest string

const (
	folderPrefix = "sha256:"
	imagePrefix  = "image:sha256:"
)

// Parse reads a digest that a person or a file gives.
func Parse(s string) (Digest, error) {
	rest, ok := strings.CutPrefix(s, imagePrefix)
	if !ok {
		rest, ok = strings.CutPrefix(s, folderPrefix)
	}
	if b, err := hex.DecodeString(rest); !ok || err != nil || len(b) != sha256.Size || strings.ToLower(rest) != rest {
		return "", fmt.Errorf("digest %.100q, expected sha256: and 64 lower-case hexadecimal digits, or image:sha256: and as many for a container image", s)
	}
	return Digest(s), nil
}

// OfImage is the digest of a container image by its identity, "sha256:…".
func OfImage(id string) (Digest, error) { return Parse("image:" + id) }

// Bounds of a driver's folder. A folder beyond them is not a driver.
const (
	MaxFiles = 10_000
	MaxBytes = 2 << 30
)

// Folder is what a driver's folder is made of.
type Folder struct {
	Digest Digest
	// Files are the SHA-256 of each regular file, in hexadecimal, by its path
	// in the folder.
	Files map[string]string
	// Newest is the file or link of the digest that changed last, and when:
	// where a digest is not the expected one, what to look at first.
	Newest   string
	NewestAt time.Time
}

// format of the list that is hashed; another format gives other digests.
const format = "linktrial driver folder v1\n"

// OfFolder reads a driver's folder. The digest is the SHA-256 of a list with a
// line for each file in the order of their paths, slashes between folders:
//
//	file 0644|0755 SHA256 PATH     a regular file; only its executable bit counts
//	link SHA256-OF-TARGET PATH     a symbolic link to something in the folder
//
// Where the folder's driver.yaml has a list "files", only driver.yaml and what the
// list names count, a folder with all below it; compiled modules of Python that it
// does not name are refused. Empty folders do not count.
// Whatever else lies there, and links that lead out of the folder or to what the
// list does not name, are refused: the digest would not cover what they refer to.
func OfFolder(dir string) (*Folder, error) {
	return ofFolder(dir, readList)
}

// ofFolder is [OfFolder], with who reads the list of a manifest.
func ofFolder(dir string, lists func(manifest string) (list, error)) (*Folder, error) {
	entries, err := walk(dir, lists)
	if err != nil {
		return nil, err
	}
	out := &Folder{Files: map[string]string{}}
	for _, e := range entries {
		if _, at := e.changed(); out.Newest == "" || at.After(out.NewestAt) {
			out.Newest, out.NewestAt = e.path, at
		}
	}
	list := sha256.New()
	_, _ = io.WriteString(list, format) // hash.Hash.Write never fails
	for _, e := range entries {
		if e.link != "" {
			sum := sha256.Sum256([]byte(e.link))
			fmt.Fprintf(list, "link %x %q\n", sum, e.path)
			continue
		}
		sum, err := hashFile(filepath.Join(dir, filepath.FromSlash(e.path)))
		if err != nil {
			return nil, err
		}
		mode := "0644"
		if e.info.Mode()&0o111 != 0 {
			mode = "0755"
		}
		out.Files[e.path] = sum
		fmt.Fprintf(list, "file %s %s %q\n", mode, sum, e.path)
	}
	out.Digest = Digest(folderPrefix + hex.EncodeToString(list.Sum(nil)))
	return out, nil
}

func hashFile(path string) (string, error) {
	// Opening a pipe that was put in place of the file must not block.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("driver's folder: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, MaxBytes+1)); err != nil {
		return "", fmt.Errorf("driver's folder: %w", err)
	} else if n > MaxBytes {
		return "", fmt.Errorf("driver's folder: %s is larger than %d bytes", path, int64(MaxBytes))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// entry is a file or a link of a driver's folder.
type entry struct {
	path string // in the folder, with slashes
	info fs.FileInfo
	link string // target of a symbolic link
}

// changed returns the number of a file, and when it was changed last, by the time
// that the kernel alone sets.
func (e *entry) changed() (inode uint64, at time.Time) {
	if st, ok := e.info.Sys().(*syscall.Stat_t); ok {
		return st.Ino, time.Unix(st.Ctim.Sec, st.Ctim.Nsec)
	}
	return 0, e.info.ModTime()
}

// walk lists what counts of a folder in the order of the paths, byte by byte.
func walk(dir string, lists func(manifest string) (list, error)) ([]entry, error) {
	counts, err := lists(filepath.Join(dir, driverfolder.Manifest))
	if err != nil {
		return nil, err
	}
	var out []entry
	var bytes int64
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("driver's folder: %w", err)
	}
	err = filepath.WalkDir(dir+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if err := counts.refuseCompiled(path, filepath.ToSlash(rel)); err != nil {
				return err
			}
			if !counts.leadsTo(filepath.ToSlash(rel)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !counts.has(filepath.ToSlash(rel)) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{path: filepath.ToSlash(rel), info: info}
		switch {
		case info.Mode().IsRegular():
			bytes += info.Size()
		case info.Mode()&fs.ModeSymlink != 0:
			if e.link, err = os.Readlink(path); err != nil {
				return err
			}
			if !inside(root, path, rel, e.link) {
				return fmt.Errorf("%s is a link to %s, outside the folder: put the file itself there", path, e.link)
			}
			if !counts.hasTarget(root, path, rel, e.link) {
				return fmt.Errorf("%s is a link to %s, which the list files of %s does not name: name it there, too", path, e.link, driverfolder.Manifest)
			}
		default:
			return fmt.Errorf("%s is neither a file nor a link", path)
		}
		out = append(out, e)
		if len(out) > MaxFiles || bytes > MaxBytes {
			return fmt.Errorf("more than %d files or %d bytes", MaxFiles, int64(MaxBytes))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("driver's folder: %w", err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("driver's folder: there is nothing in %s", dir)
	}
	if missing := counts.missing(out); missing != "" {
		return nil, fmt.Errorf("driver's folder: the list files of %s names %s, which is not in %s", driverfolder.Manifest, missing, dir)
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// inside reports whether a link stays in the folder, both by its text (the target
// may not exist yet) and with other links followed.
func inside(root, path, rel, link string) bool {
	if filepath.IsAbs(link) || !filepath.IsLocal(filepath.Join(filepath.Dir(rel), link)) {
		return false
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return os.IsNotExist(err)
	}
	target, err = filepath.Rel(root, target)
	return err == nil && filepath.IsLocal(target)
}

// Cache reads a folder again only when something in them has changed: a file's
// path, size, mode, identity, or its times, of which the kernel alone sets one.
// Any number of goroutines may use it.
type Cache struct {
	mu    sync.Mutex
	seen  map[string]remembered
	lists map[string]parsed // by the manifest's path
}

type remembered struct {
	state  string
	folder *Folder
}

// Folder is [OfFolder] of a folder, as it is now. The result must not be changed.
func (c *Cache) Folder(dir string) (*Folder, error) {
	before, err := c.state(dir)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	r, ok := c.seen[dir]
	c.mu.Unlock()
	if ok && r.state == before {
		return r.folder, nil
	}
	f, err := ofFolder(dir, c.list)
	if err != nil {
		return nil, err
	}
	// A folder that changed while it was read is read again next time.
	if after, err := c.state(dir); err == nil && after == before {
		c.mu.Lock()
		if c.seen == nil {
			c.seen = map[string]remembered{}
		}
		c.seen[dir] = remembered{before, f}
		c.mu.Unlock()
	}
	return f, nil
}

// state changes with every change of a folder's content; it is computed without
// reading the files.
func (c *Cache) state(dir string) (string, error) {
	entries, err := walk(dir, c.list)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, e := range entries {
		inode, changed := e.changed()
		fmt.Fprintf(h, "%q %q %o %d %d %d %d\n", e.path, e.link, e.info.Mode(), e.info.Size(), e.info.ModTime().UnixNano(), inode, changed.UnixNano())
	}
	return string(h.Sum(nil)), nil
}
