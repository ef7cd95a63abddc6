package executor

import (
	"fmt"
	"sync"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/payload"
)

// received is the payload that one server process has handed over, of the transfers that
// are under way: what arrived is known by it, not by what the driver says of it.
type received struct {
	sheet *runsheet.Sheet
	place func(transfer string) (place, bool)

	mu sync.Mutex
	of map[string]*arrived
}

// arrived is what has been handed over of a transfer.
type arrived struct {
	payload.Arrived
	most  int64
	wrong *credible.Fault // of a count of the driver's; nil: all may be true
}

func newReceived(s *runsheet.Sheet, find func(string) (place, bool)) *received {
	return &received{sheet: s, place: find, of: map[string]*arrived{}}
}

// Take implements [driver.Payload]. What belongs to no attempt of the run is not kept.
func (r *received) Take(transfer string, b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.arrived(transfer)
	if a == nil {
		return nil
	}
	if a.Add(b); a.Bytes > a.most {
		return fmt.Errorf("%d bytes of payload of transfer %s, which has at most %d", a.Bytes, transfer, a.most)
	}
	return nil
}

// Counted implements [driver.Payload].
func (r *received) Counted(transfer string, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.arrived(transfer); a != nil && a.wrong == nil {
		a.wrong = credible.Handed(bytes, a.Bytes)
	}
}

// arrived is what has been handed over of a transfer; nil: it belongs to no attempt of the run.
func (r *received) arrived(transfer string) *arrived {
	a := r.of[transfer]
	if a == nil {
		at, ok := r.place(transfer)
		if !ok {
			return nil
		}
		a = &arrived{most: r.sheet.Trials[at.trial].Carried()[at.flow].SizeBytes}
		r.of[transfer] = a
	}
	return a
}

// end completes the report of a transfer's end with what was handed over, where there is a
// result, says what of it cannot be true, and forgets the transfer.
func (r *received) end(of *journal.Received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result, a := of.Result, r.of[of.Transfer]
	delete(r.of, of.Transfer)
	if result == nil || result.Probe != nil {
		return
	}
	if a == nil {
		a = &arrived{}
	}
	result.SizeBytes, result.Digest = a.Bytes, a.Digest()
	if a.wrong != nil {
		of.Reason, of.Message = a.wrong.Reason, a.wrong.Message
	}
}
