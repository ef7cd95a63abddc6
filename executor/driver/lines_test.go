package driver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/protocols/contract"
)

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }
func (systemClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// taker is a [Payload] that notes what it is told.
type taker struct {
	take func(transfer string, b []byte) error
	said []string
}

func (t *taker) Take(transfer string, b []byte) error {
	t.said = append(t.said, fmt.Sprintf("%s took %d", transfer[31:], len(b)))
	return t.take(transfer, b)
}

func (t *taker) Counted(transfer string, bytes int64) {
	t.said = append(t.said, fmt.Sprintf("%s counts %d", transfer[31:], bytes))
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"event":"ready","info":{"implementation":"x"}}` + "\n"))
	f.Add([]byte("nonsense\n"))
	f.Add([]byte(strings.Repeat("y", contract.MaxLine+3)))
	f.Add([]byte(`{"event":"connected","transfer":"00000000000000000000000000000000"}` + "\n{"))
	f.Add([]byte(`{"event":"payload","transfer":"00000000000000000000000000000000","bytes":3}` + "\n\x00\n{" + `{"event":"ready","info":{"implementation":"x"}}` + "\n"))
	f.Add([]byte(`{"event":"payload","transfer":"00000000000000000000000000000000","bytes":1048577}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		faults := 0
		taken := 0
		take := func(transfer string, block []byte) error {
			if taken += len(block); len(block) == 0 || len(transfer) != 32 || taken > 1000 {
				return fmt.Errorf("%d bytes, %d in all", len(block), taken)
			}
			return nil
		}
		for l := range Lines(io.NopCloser(bytes.NewReader(b)), systemClock{}, &taker{take: take}) {
			if faults > 0 {
				t.Fatal("something was read after a fault")
			}
			if l.Event == nil {
				faults++
				if l.Reason != journal.ReasonGarbage && l.Reason != journal.ReasonFlood || l.Message == "" {
					t.Fatalf("fault %+v", l)
				}
			}
		}
	})
}

func TestPayloadBetweenEvents(t *testing.T) {
	const id = "00000000000000000000000000000001"
	line := `{"event":"payload","transfer":"` + id + `","bytes":%d}` + "\n%s"
	text := fmt.Sprintf(line, 5, "a\n{\"b") + `{"event":"ready","info":{"implementation":"x"}}` + "\n" + fmt.Sprintf(line, 2, "cd")
	read := func(payload Payload) (kinds, faults []string) {
		for l := range Lines(io.NopCloser(strings.NewReader(text)), systemClock{}, payload) {
			if l.Event == nil {
				faults = append(faults, l.Message)
			} else {
				kinds = append(kinds, string(l.Event.Event))
			}
		}
		return kinds, faults
	}
	got := ""
	kinds, faults := read(&taker{take: func(transfer string, b []byte) error {
		got += transfer[31:] + ":" + string(b) + ";"
		return nil
	}})
	if got != "1:a\n{\"b;1:cd;" || len(kinds) != 1 || kinds[0] != "ready" || faults != nil {
		t.Errorf("taken %q, events %v, faults %v", got, kinds, faults)
	}
	if kinds, faults = read(&taker{take: func(string, []byte) error { return errors.New("too much") }}); kinds != nil || len(faults) != 1 || faults[0] != "too much" {
		t.Errorf("events %v, faults %v", kinds, faults)
	}
	if kinds, faults = read(nil); kinds != nil || len(faults) != 1 || !strings.Contains(faults[0], "no server of a transfer") {
		t.Errorf("events %v, faults %v", kinds, faults)
	}
}

// What a server counts as received is told between the blocks that it has handed over
// before and after.
func TestCountsAreToldInOrder(t *testing.T) {
	const id = "00000000000000000000000000000001"
	block := `{"event":"payload","transfer":"` + id + `","bytes":2}` + "\nab"
	count := `{"event":"sample","transfer":"` + id + `","sample":{"elapsed_ns":%d,"sent_bytes":%d}}` + "\n"
	result := `{"event":"result","transfer":"` + id + `","result":{"size_bytes":4,"elapsed_ns":9%s}}` + "\n"
	text := block + fmt.Sprintf(count, 1, 2) + block + fmt.Sprintf(count, 2, 4) + fmt.Sprintf(result, `,"final":{"elapsed_ns":9,"sent_bytes":5}`) + fmt.Sprintf(result, "")
	taken := &taker{take: func(string, []byte) error { return nil }}
	for l := range Lines(io.NopCloser(strings.NewReader(text)), systemClock{}, taken) {
		if l.Event == nil {
			t.Fatal(l.Message)
		}
	}
	want := []string{"1 took 2", "1 counts 2", "1 took 2", "1 counts 4", "1 counts 5"}
	if !slices.Equal(taken.said, want) {
		t.Errorf("told %q, expected %q", taken.said, want)
	}
}
