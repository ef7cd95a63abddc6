package rebuild

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Bag is what is read of a bag of evidence; orchestrator/evidence.Bag is one.
type Bag interface {
	// Open opens a file of the bag, such as data/plan.yaml. An error at its end says that
	// the content is not that of the bag's manifest.
	Open(name string) (io.ReadCloser, error)
	Names() []string // of all files
}

// has reports whether a bag has a file.
func has(b Bag, name string) bool { return slices.Contains(b.Names(), name) }

// below are the names of a bag's files in a folder and the folders in it.
func below(b Bag, folder string) (out []string) {
	for _, name := range b.Names() {
		if strings.HasPrefix(name, folder+"/") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// read is the content of a file of at most so many bytes.
func read(b Bag, name string, most int64) ([]byte, error) {
	r, err := b.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return content, nil
}

var errLongLine = errors.New("it is too long")

// eachLine calls f with every line of a file, without its newline, and its number from 1. The
// line is valid until f returns. whole: the line has a newline.
func eachLine(b Bag, name string, most int, f func(number int, line []byte, whole bool) error) error {
	r, err := b.Open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer r.Close()
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for number := 1; ; number++ {
		line = line[:0]
		var err error
		for part := []byte(nil); ; {
			part, err = in.ReadSlice('\n')
			if line = append(line, part...); len(line) > most {
				return fmt.Errorf("%s, line %d: %w, expected at most %d bytes", name, number, errLongLine, most)
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(line) > 0 {
			text, whole := bytes.CutSuffix(line, []byte("\n"))
			if err := f(number, text, whole); err != nil {
				return fmt.Errorf("%s, line %d: %w", name, number, err)
			}
		}
		if err != nil {
			return nil
		}
	}
}
