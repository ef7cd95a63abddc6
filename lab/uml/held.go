package uml

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// held follows a journal that a guest writes, and holds what has been seen of it: agents
// only ever append whole lines.
type held struct {
	path string
	at   int64     // bytes of whole lines: an agent that starts again cuts off half of one
	sum  hash.Hash // of these
}

func hold(path string) *held { return &held{path: path, sum: sha256.New()} }

// read hands take what has been added, in whole lines. A journal that does not exist yet
// is empty.
func (h *held) read(take func(lines []byte)) error {
	f, err := os.Open(h.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(h.at, io.SeekStart); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	var rest []byte // of a line whose end has not been read
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		rest = append(rest, buf[:n]...)
		lines := rest[:bytes.LastIndexByte(rest, '\n')+1]
		h.sum.Write(lines)
		h.at += int64(len(lines))
		take(lines)
		rest = bytes.Clone(rest[len(lines):])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
}

// check returns an error where the journal does not begin with what has been seen of it.
func (h *held) check() error {
	if h.at == 0 {
		return nil
	}
	f, err := os.Open(h.path)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer f.Close()
	now := sha256.New()
	n, err := io.CopyN(now, f, h.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("journal: %w", err)
	}
	if n < h.at || !bytes.Equal(now.Sum(nil), h.sum.Sum(nil)) {
		return fmt.Errorf("%w: the first %d bytes of %s are not those that the host has seen; nothing of this run is stored", ErrChanged, h.at, h.path)
	}
	return nil
}
