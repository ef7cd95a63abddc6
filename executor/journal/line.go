package journal

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A line is the CRC-32C (Castagnoli; RFC 3720, appendix B.4) of the record's
// JSON in eight lower-case hexadecimal digits, a space, the JSON, a newline.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const prefix = 9 // digits and space

func appendLine(b, record []byte) []byte {
	sum := crc32.Checksum(record, castagnoli)
	b = hex.AppendEncode(b, []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	b = append(b, ' ')
	b = append(b, record...)
	return append(b, '\n')
}

var (
	errNoNewline = errors.New("line without end")
	errForm      = errors.New("line is no checksum and record")
	errChecksum  = errors.New("checksum does not match")
)

// cutLine takes the first line of b and returns its record and what follows.
func cutLine(b []byte) (record, rest []byte, err error) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return nil, nil, errNoNewline
	}
	record, err = checkLine(b[:i])
	return record, b[i+1:], err
}

func checkLine(line []byte) ([]byte, error) {
	if len(line) < prefix || line[prefix-1] != ' ' {
		return nil, errForm
	}
	record := line[prefix:]
	want := appendLine(nil, record)
	if !bytes.Equal(want[:prefix], line[:prefix]) {
		if _, err := hex.DecodeString(string(line[:prefix-1])); err != nil {
			return nil, errForm
		}
		return nil, errChecksum
	}
	return record, nil
}

// DamageError reports a journal that is damaged before its last whole record.
type DamageError struct {
	Line   int   // from 1
	Offset int64 // of the line's first byte
	Err    error
	zeros  bool // the line holds zeros, so it may be the unfinished end
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("damaged at line %d (offset %d): %v", e.Line, e.Offset, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// Scan reads a journal from its start and calls f with each record and the
// offset after it. It returns the offset behind the last whole record. One
// line without a newline may follow, or zeros, which some file systems leave
// where a power cut took data: the unfinished end of a crash, and no error.
// Any other line that is not whole is damage ([DamageError]), and so are a gap
// in the sequence and a checked line that is no record.
func Scan(r io.Reader, f func(rec Record, end int64) error) (good int64, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	var broken *DamageError
	var at int64
	seq := int64(0)
	for line := 1; ; line++ {
		if broken != nil && !broken.zeros {
			return good, broken
		}
		b, err := readLine(br)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLong) {
			return good, fmt.Errorf("read: %w", err)
		}
		if errors.Is(err, io.EOF) && len(b.bytes) == 0 {
			return good, nil
		}
		start := at
		at += b.length
		cause := err
		var record []byte
		if err == nil {
			record, cause = checkLine(b.bytes)
		}
		if cause != nil {
			if errors.Is(cause, io.EOF) {
				return good, nil // no newline: nothing can follow
			}
			if broken == nil {
				broken = &DamageError{Line: line, Offset: start, Err: cause, zeros: bytes.IndexByte(b.bytes, 0) >= 0}
			}
			continue
		}
		if broken != nil {
			return good, broken
		}
		var rec Record
		if err := json.Unmarshal(record, &rec); err != nil {
			return good, &DamageError{Line: line, Offset: start, Err: fmt.Errorf("record: %w", err)}
		}
		if seq++; rec.Seq != seq {
			return good, &DamageError{Line: line, Offset: start, Err: fmt.Errorf("record %d where %d was expected", rec.Seq, seq)}
		}
		if err := f(rec, at); err != nil {
			return good, err
		}
		good = at
	}
}

var errLong = fmt.Errorf("line longer than %d bytes", MaxRecord+prefix)

type rawLine struct {
	bytes  []byte // without the newline
	length int64  // with it
}

// readLine reads a line of bounded length; of a longer one it returns the
// length and errLong.
func readLine(br *bufio.Reader) (rawLine, error) {
	var l rawLine
	for {
		part, err := br.ReadSlice('\n')
		l.length += int64(len(part))
		if l.length <= MaxRecord+prefix+1 {
			l.bytes = append(l.bytes, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return l, err
		}
		if l.length > MaxRecord+prefix+1 {
			l.bytes = nil
			return l, errLong
		}
		l.bytes = l.bytes[:len(l.bytes)-1]
		return l, nil
	}
}

// withoutNUL replaces escaped NULs in encoded JSON by U+FFFD. A driver's log
// may hold them, and the store's database takes none in a text.
func withoutNUL(b []byte) []byte {
	if !bytes.Contains(b, []byte(`\u0000`)) {
		return b
	}
	out := bytes.Clone(b)
	for i := 0; i+1 < len(out); i++ {
		if out[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(out[i:], []byte(`\u0000`)) {
			copy(out[i:], `\ufffd`)
		}
		i++ // the escaped character is not itself the start of an escape
	}
	return out
}
