package evidence

import (
	"fmt"
	"io"
	"strings"
)

// declaration is all that a bag declares of itself (RFC 8493, section 2.1.1).
const declaration = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"

// Bounds of small files, in bytes.
const (
	maxInfo    = 64 << 10
	maxSheet   = 64 << 20
	maxSigners = 4 << 20
)

// checkBag holds the bag's files against its manifests (RFC 8493, section 3).
func (c *checker) checkBag() error {
	x, b := c.check(CheckBag), c.bag
	if want := Folder(b.Index.Campaign); b.folder != "" && b.folder != want {
		x.find(Index, "the bag's folder is %s, expected %s", b.folder, want)
	}
	for _, name := range b.names {
		_, inPayload := b.payload[name]
		_, inTags := b.tags[name]
		switch {
		case strings.HasPrefix(name, Payload+"/") && !inPayload:
			x.find(name, "the bag has it, and %s does not", Manifest)
		case strings.HasPrefix(name, Payload+"/") || inTags || name == TagManifest || name == TagSignature:
		default:
			x.find(name, "the bag has it, and %s does not", TagManifest)
		}
	}
	for manifest, list := range map[string]map[string]string{Manifest: b.payload, TagManifest: b.tags} {
		x.Objects += len(list)
		for name := range list {
			if !b.Has(name) {
				x.find(name, "%s has it, and the bag does not", manifest)
			}
		}
	}
	if _, ok := b.tags[Manifest]; !ok {
		x.find(Manifest, "%s does not have it: the signature of the bag says nothing of the files below %s", TagManifest, Payload)
	}
	if text, ok := c.get(Declaration, maxInfo); ok && string(text) != declaration {
		x.find(Declaration, "it has %.80q, expected %q", text, declaration)
	}
	if text, ok := c.get(Info, maxInfo); ok {
		c.checkOxum(string(text))
	}
	return nil
}

// checkOxum holds the sum of the payload's bytes and files against the bag's information
// (RFC 8493, section 2.2.2).
func (c *checker) checkOxum(info string) {
	x := c.check(CheckBag)
	var bytes, files int64
	for name, f := range c.bag.files {
		if strings.HasPrefix(name, Payload+"/") {
			bytes, files = bytes+f.size, files+1
		}
	}
	want, found := fmt.Sprintf("%d.%d", bytes, files), false
	for line := range strings.Lines(info) {
		label, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(label, "Payload-Oxum") {
			continue
		}
		if value = strings.TrimSpace(value); value != want {
			x.find(Info, "Payload-Oxum is %.80q, the bag has %s (bytes and files below %s)", value, want, Payload)
		}
		found = true
	}
	if !found {
		x.find(Info, "it has no Payload-Oxum, expected %s", want)
	}
}

// checkDigests reads every file that no other check has read.
func (c *checker) checkDigests() error {
	x := c.check(CheckDigests)
	for _, name := range c.bag.names {
		if _, _, ok := c.bag.digestOf(name); !ok {
			continue
		}
		x.Objects++
		if strings.HasSuffix(name, "/journal.jsonl") && c.journals[name] {
			continue // read already, and of a journal that is the most
		}
		if err := c.doing(name); err != nil {
			return err
		}
		if err := c.readThrough(name); err != nil {
			return err
		}
	}
	return nil
}

// readThrough reads a file to its end. The error is the context's alone.
func (c *checker) readThrough(name string) error {
	in, err := c.bag.Open(name)
	if err == nil {
		_, err = io.Copy(io.Discard, &counted{c, in})
		_ = in.Close() // only read
	}
	if err != nil {
		c.wrong(name, err)
	}
	return c.ctx.Err()
}

// counted counts what is read, tells it, and ends with the context.
type counted struct {
	c  *checker
	in io.Reader
}

// toldEvery is after how many bytes of a file the progress is told again.
const toldEvery = 4 << 20

func (r *counted) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	before := r.c.read / toldEvery
	if r.c.read += int64(n); r.c.read/toldEvery == before {
		return n, err
	}
	if ended := r.c.doing(r.c.file); ended != nil {
		return n, ended
	}
	return n, err
}
