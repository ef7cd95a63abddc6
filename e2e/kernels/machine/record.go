package machine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
)

// Outcome is what came of one thing that was tried inside.
type Outcome string

// The outcomes. NotSupported is one that was expected of this kernel.
const (
	Passed       Outcome = "passed"
	Failed       Outcome = "failed"
	NotSupported Outcome = "not supported"
)

// Record is what the program inside reports of one thing that it tried.
type Record struct {
	Group   string  `json:"group"` // the table of the result page
	Name    string  `json:"name"`  // the row
	Outcome Outcome `json:"outcome"`
	// Values are what the page's cell lists, in the order that its group states.
	Values []string `json:"figures,omitempty"`
	// Detail says why, where the outcome is not Passed.
	Detail string `json:"detail,omitempty"`
}

// Serial lines of the machine: what the kernel and programs say, and records.
const (
	ConsoleDevice = "/dev/ttyS0"
	RecordDevice  = "/dev/ttyS1"
)

// TestPattern is a file of the machine: which tests the program inside runs, as
// go test -run has it; empty, or without the file: all.
const TestPattern = "/pattern"

// exitLine is the last line that the guest writes to RecordDevice.
type exitLine struct {
	Exit   *int   `json:"exit"`
	Kernel string `json:"kernel"`
}

// ExitLine returns the last line of the records, which only a guest that came to
// its end has written: the exit code of the program inside, and the kernel's release.
func ExitLine(code int, release string) []byte {
	b, err := json.Marshal(exitLine{&code, release})
	if err != nil { // of an int and a string
		panic(err)
	}
	return append(b, '\n')
}

// parseRecords reads what the guest wrote. The exit line is nil where there is none.
func parseRecords(b []byte) (records []Record, exit *exitLine, err error) {
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 {
			continue
		}
		var e exitLine
		if err := json.Unmarshal(line, &e); err != nil {
			return records, nil, fmt.Errorf("records of the guest, line %d: %w: %.80q", n, err, line)
		}
		if e.Exit != nil {
			return records, &e, nil
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return records, nil, fmt.Errorf("records of the guest, line %d: %w", n, err)
		}
		records = append(records, r)
	}
	return records, nil, s.Err()
}
