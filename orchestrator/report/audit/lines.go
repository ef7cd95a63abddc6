package audit

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// maxLine is the longest line of a journal that is read: a record of at most 960 KiB
// (docs/data-format.md), its checksum and a blank.
const maxLine = 960<<10 + crcDigits + 1

// crcDigits is the length of a line's CRC-32C in hexadecimal.
const crcDigits = 8

// A line of a journal: either the JSON of its record, or what is wrong with it.
type line struct {
	number int
	offset int64
	record []byte // JSON; valid until the next line is read
	fault  string
	// torn: it has no newline, so nothing follows.
	torn bool
}

// readLines reads a journal to its end, whatever is wrong with its lines.
func readLines(r io.Reader, f func(line) error) error {
	br := bufio.NewReaderSize(r, 256<<10)
	var at int64
	var long []byte
	for n := 1; ; n++ {
		l := line{number: n, offset: at}
		long = long[:0]
		var text []byte
		length := 0
		for {
			part, err := br.ReadSlice('\n')
			length += len(part)
			switch {
			case length > maxLine+1:
				long, text = long[:0], nil
			case errors.Is(err, bufio.ErrBufferFull) || len(long) > 0:
				long = append(long, part...)
				text = long
			default:
				text = part
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if errors.Is(err, io.EOF) {
				if length == 0 {
					return nil
				}
				l.torn = true
			} else if err != nil {
				return err
			}
			break
		}
		at += int64(length)
		switch {
		case l.torn:
			l.fault = fmt.Sprintf("the file ends in %d bytes that are no whole line", length)
		case text == nil:
			l.fault = fmt.Sprintf("the line has %d bytes, expected at most %d", length-1, maxLine)
		default:
			l.record, l.fault = checkLine(text[:len(text)-1])
		}
		if err := f(l); err != nil {
			return err
		}
		if l.torn {
			return nil
		}
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checkLine takes the record out of a line without its newline.
func checkLine(text []byte) (record []byte, fault string) {
	if len(bytes.Trim(text, "\x00")) == 0 && len(text) > 0 {
		return nil, fmt.Sprintf("the line is %d zero bytes", len(text))
	}
	if len(text) < crcDigits+1 || text[crcDigits] != ' ' {
		return nil, "the line is no checksum and record"
	}
	digits := text[:crcDigits]
	want, err := hex.DecodeString(string(digits))
	if err != nil || bytes.ContainsAny(digits, "ABCDEF") {
		return nil, fmt.Sprintf("the line begins with %q, expected a CRC-32C in eight lower-case hexadecimal digits", digits)
	}
	record = text[crcDigits+1:]
	sum := crc32.Checksum(record, castagnoli)
	if got := [4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}; !bytes.Equal(got[:], want) {
		return nil, fmt.Sprintf("the record's CRC-32C is %x, the line says %s", got, digits)
	}
	return record, ""
}
