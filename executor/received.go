package executor

import (
	"fmt"
	"sync"

	"linktrial/executor/runsheet"
	"linktrial/internal/payload"
	"linktrial/protocols/contract"
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
	most int64
}

func newReceived(s *runsheet.Sheet, find func(string) (place, bool)) *received {
	return &received{sheet: s, place: find, of: map[string]*arrived{}}
}

// take implements [driver.Payload]. What belongs to no attempt of the run is not kept.
func (r *received) take(transfer string, b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.of[transfer]
	if a == nil {
		at, ok := r.place(transfer)
		if !ok {
			return nil
		}
		a = &arrived{most: r.sheet.Trials[at.trial].Carried()[at.flow].SizeBytes}
		r.of[transfer] = a
	}
	if a.Add(b); a.Bytes > a.most {
		return fmt.Errorf("%d bytes of payload of transfer %s, which has at most %d", a.Bytes, transfer, a.most)
	}
	return nil
}

// end completes a transfer's result with what was handed over, where there is one, and
// forgets it.
func (r *received) end(transfer string, result *contract.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.of[transfer]
	delete(r.of, transfer)
	if result == nil || result.Probe != nil {
		return
	}
	if a == nil {
		a = &arrived{}
	}
	result.SizeBytes, result.Digest = a.Bytes, a.Digest()
}
