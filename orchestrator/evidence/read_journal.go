package evidence

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"linktrial/executor/journal"
)

// lineError says what is wrong with a line of a file.
type lineError struct {
	line    int64 // from 1
	problem string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.problem) }

// lineReader reads the lines of a file, each bounded.
type lineReader struct {
	in   *bufio.Reader
	most int // bytes of a line with its end
	line []byte
	n    int64
}

func newLines(in io.Reader, most int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 64<<10), most: most}
}

// next returns a line with its end; it is valid until the next call. The error is io.EOF, a
// [lineError], or that of the file.
func (l *lineReader) next() ([]byte, error) {
	l.line = l.line[:0]
	l.n++
	for {
		part, err := l.in.ReadSlice('\n')
		if len(l.line)+len(part) > l.most {
			return nil, &lineError{l.n, fmt.Sprintf("it has more than %d bytes", l.most-1)}
		}
		l.line = append(l.line, part...)
		switch {
		case err == nil:
			return l.line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.line) > 0:
			return nil, &lineError{l.n, "the file ends in the middle of it"}
		default:
			return nil, err
		}
	}
}

// journalLine is the longest line of a journal: checksum, space, record, end.
const journalLine = 8 + 1 + journal.MaxRecord + 1

// record takes the record out of a line of a journal (docs/data-format.md).
func (l *lineReader) record(text []byte) ([]byte, error) {
	if len(text) < 10 || text[8] != ' ' {
		return nil, &lineError{l.n, "it is no checksum and record"}
	}
	record := text[9 : len(text)-1]
	if want := journal.AppendLine(nil, record); !bytes.Equal(want, text) {
		return nil, &lineError{l.n, fmt.Sprintf("the record's checksum is %s, the line has %.8q", want[:8], text[:8])}
	}
	return record, nil
}

// recordDigests reads records.sha256, and computes what a statement has of it.
type recordDigests struct {
	lines *lineReader
	sum   hash.Hash
	n     int64
	last  [sha256.Size]byte
}

func newRecordDigests(in io.Reader) *recordDigests {
	return &recordDigests{lines: newLines(in, 2*sha256.Size+1), sum: sha256.New()}
}

// next takes the next record's digest.
func (d *recordDigests) next() error {
	text, err := d.lines.next()
	if err != nil {
		return err
	}
	if len(text) != 2*sha256.Size+1 || !isSHA256(string(text[:2*sha256.Size])) {
		return &lineError{d.lines.n, "expected a SHA-256 in 64 hexadecimal digits"}
	}
	if _, err := hex.Decode(d.last[:], text[:2*sha256.Size]); err != nil {
		return &lineError{d.lines.n, err.Error()}
	}
	d.sum.Write(d.last[:])
	d.n++
	return nil
}

// to takes the digests up to that of record n.
func (d *recordDigests) to(n int64) error {
	for d.n < n {
		if err := d.next(); err != nil {
			return err
		}
	}
	return nil
}
