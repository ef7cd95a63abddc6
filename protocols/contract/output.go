package contract

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Output reads what a driver writes to standard output: events, and after those of
// [KindPayload] the bytes that they announce.
type Output struct {
	r     *bufio.Reader
	block []byte
}

// BreachError is the error of output that breaks the contract.
type BreachError struct{ Err error }

func (e *BreachError) Error() string { return e.Err.Error() }
func (e *BreachError) Unwrap() error { return e.Err }

// NewOutput returns a reader of a driver's standard output.
func NewOutput(r io.Reader) *Output { return &Output{r: bufio.NewReaderSize(r, MaxLine+2)} }

// Next reads the next event: with the length of its line in bytes, its newline included,
// and the payload that it announces, which is good until the next call. The error is
// io.EOF, also where a line or the payload has not ended, that of the reader, or a
// [BreachError]. After one nothing more can be read.
func (o *Output) Next() (e *Event, size int, payload []byte, err error) {
	line, err := o.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, 0, nil, &BreachError{ErrLineTooLong}
	}
	if err != nil {
		return nil, 0, nil, err
	}
	if e, err = ParseEvent(line); err != nil {
		return nil, 0, nil, &BreachError{fmt.Errorf("%w: %.120q", err, line)}
	}
	size = len(line)
	if e.Event == KindPayload {
		payload, err = o.read(e.Bytes)
	}
	return e, size, payload, err
}

func (o *Output) read(n int) ([]byte, error) {
	if cap(o.block) < n {
		o.block = make([]byte, n)
	}
	b := o.block[:n]
	if _, err := io.ReadFull(o.r, b); errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, io.EOF
	} else if err != nil {
		return nil, err
	}
	return b, nil
}
