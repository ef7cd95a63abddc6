package uml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Progress is how far the sheets of [Run] have come.
type Progress struct {
	Sheets, SheetsEnded int
	Trials, TrialsEnded int
	// Attempts is how often the trial under way has been attempted; where several guests
	// run, the most of them.
	Attempts int
	Virtual  time.Duration // of all guests together
	Wall     time.Duration
}

// PerSecond is the virtual seconds that pass in a second of wall time.
func (p Progress) PerSecond() float64 {
	if p.Wall <= 0 {
		return 0
	}
	return p.Virtual.Seconds() / p.Wall.Seconds()
}

// counter counts the trials that have ended in a journal as it grows, and the attempts
// since. It looks for the record's type alone: reading journals is others' work.
type counter struct {
	path     string
	at       int64
	tail     []byte // of a line whose end is not written yet
	ended    int
	attempts int // started since the last trial ended
}

// These cannot occur inside a JSON string, whose quotes are escaped.
var (
	trialEnded     = []byte(`"type":"trial-ended"`)
	attemptStarted = []byte(`"type":"attempt-started"`)
)

// read takes what has been added. A journal that does not exist yet is empty.
func (c *counter) read() error {
	f, err := os.Open(c.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(c.at, io.SeekStart); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		c.take(buf[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
}

func (c *counter) take(b []byte) {
	c.at += int64(len(b))
	b = append(c.tail, b...)
	whole := b[:bytes.LastIndexByte(b, '\n')+1]
	if last := bytes.LastIndex(whole, trialEnded); last >= 0 {
		c.ended += bytes.Count(whole, trialEnded)
		c.attempts = bytes.Count(whole[last:], attemptStarted)
	} else {
		c.attempts += bytes.Count(whole, attemptStarted)
	}
	c.tail = bytes.Clone(b[len(whole):])
}
