package evidence

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"linktrial/internal/atomicfile"
)

// file is one file of a bag that has been written.
type file struct {
	name   string // below the bag's folder
	bytes  int64
	sha256 string
	// What is said of it in the metadata.
	media, title string
}

// bag writes a BagIt bag (RFC 8493) into a ZIP file, one file after the other. It has its name
// once it is whole. Sizes beyond 4 GiB make it a Zip64 file.
type bag struct {
	ended  func() error // why nothing more is to be written; nil: it is
	to     *atomicfile.File
	bytes  int64
	zip    *zip.Writer
	folder string
	packed time.Time
	names  map[string]bool
	data   []file // the payload, in the order in which it was written
	tags   []file
}

func newBag(ctx context.Context, at, folder string, packed time.Time) (*bag, error) {
	to, err := atomicfile.Create(at, 0o600)
	if err != nil {
		return nil, err
	}
	b := &bag{ended: ctx.Err, to: to, folder: folder, packed: packed.UTC(), names: map[string]bool{}}
	b.zip = zip.NewWriter(b)
	return b, nil
}

// Write adds to the ZIP file. It ends with the context.
func (b *bag) Write(p []byte) (int, error) {
	if err := b.ended(); err != nil {
		return 0, err
	}
	n, err := b.to.Write(p)
	b.bytes += int64(n)
	return n, err
}

// checkName refuses a name that some system would take for another one, or for a path out of
// the folder.
func (b *bag) checkName(name string) error {
	odd := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("._-+/", r)
	}
	switch {
	case !fs.ValidPath(name) || strings.ContainsFunc(name, odd):
		return fmt.Errorf("%q cannot be the name of a file in a bag: expected letters, digits, '.', '_', '-' and '+', in folders", name)
	case slices.ContainsFunc(strings.Split(name, "/"), func(s string) bool { return strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") }):
		return fmt.Errorf("%q cannot be the name of a file in a bag: a part of it begins or ends with a dot", name)
	case b.names[strings.ToLower(name)]:
		return fmt.Errorf("%q would be twice in the bag", name)
	}
	b.names[strings.ToLower(name)] = true
	return nil
}

// entry is a file that is being written.
type entry struct {
	ended func() error
	to    io.Writer
	sum   hash.Hash
	bytes int64
}

func (e *entry) Write(p []byte) (int, error) {
	if err := e.ended(); err != nil { // what compresses well would not meet bag.Write for long
		return 0, err
	}
	n, err := e.to.Write(p)
	e.sum.Write(p[:n])
	e.bytes += int64(n)
	return n, err
}

// add writes a file below the bag's folder.
func (b *bag) add(name, media, title string, write func(io.Writer) error) error {
	if err := b.checkName(name); err != nil {
		return err
	}
	h := &zip.FileHeader{Name: path.Join(b.folder, name), Method: zip.Deflate, Modified: b.packed}
	h.SetMode(0o644)
	w, err := b.zip.CreateHeader(h)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	e := &entry{ended: b.ended, to: w, sum: sha256.New()}
	if err := write(e); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f := file{name: name, bytes: e.bytes, sha256: hex.EncodeToString(e.sum.Sum(nil)), media: media, title: title}
	if strings.HasPrefix(name, Payload+"/") {
		b.data = append(b.data, f)
	} else {
		b.tags = append(b.tags, f)
	}
	return nil
}

func (b *bag) addText(name, media, title, text string) error {
	return b.add(name, media, title, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// manifest has a line for each file: its SHA-256 and its name, as sha256sum -c reads them.
func manifest(files []file) string {
	lines := make([]string, 0, len(files))
	for i := range files {
		lines = append(lines, files[i].sha256+"  "+files[i].name+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[2*sha256.Size:], b[2*sha256.Size:]) })
	return strings.Join(lines, "")
}

// payload is how many bytes the payload has.
func (b *bag) payload() (bytes int64) {
	for i := range b.data {
		bytes += b.data[i].bytes
	}
	return bytes
}

// infoLine is a line of bag-info.txt. What nobody gave has none, and no value begins a line of
// its own.
func infoLine(label, value string) string {
	if value == "" {
		return ""
	}
	return label + ": " + strings.Join(strings.Fields(value), " ") + "\n"
}

// seal writes the declaration, the bag's information, manifests and signature.
func (b *bag) seal(info string, sign func([]byte) (string, error)) error {
	const text = "text/plain"
	info += infoLine("Payload-Oxum", fmt.Sprintf("%d.%d", b.payload(), len(b.data)))
	for _, t := range []struct{ name, content string }{
		{Declaration, "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"},
		{Info, info},
		{Manifest, manifest(b.data)},
	} {
		if err := b.addText(t.name, text, "", t.content); err != nil {
			return err
		}
	}
	tags := manifest(b.tags)
	if err := b.addText(TagManifest, text, "", tags); err != nil {
		return err
	}
	signature, err := sign([]byte(tags))
	if err != nil {
		return err
	}
	return b.addText(TagSignature, text, "", signature)
}

// commit gives the file its name, and returns how large it is in bytes.
func (b *bag) commit() (int64, error) {
	if err := b.zip.Close(); err != nil {
		return 0, err
	}
	return b.bytes, b.to.Commit()
}
