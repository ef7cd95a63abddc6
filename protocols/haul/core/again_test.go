package core

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Of payload that is sent again the bytes are counted: none where nothing is lost, and never
// more than the packets that carried it again could hold.
func TestBytesAgain(t *testing.T) {
	for _, loss := range []float64{0, 0.1} {
		r := rand.New(rand.NewPCG(7, 3))
		link := func() *path {
			return &path{rate: 250e3, delay: 20 * time.Millisecond, queue: 1000, lost: func(time.Duration) bool { return r.Float64() < loss }}
		}
		s := newSim(Config{NoCoding: true}, Config{NoCoding: true}, link(), link(), 7)
		if _, _, ok := s.transfer(1<<20, 5*time.Minute); !ok {
			t.Fatalf("loss %v: the transfer did not complete", loss)
		}
		for _, conn := range s.conns {
			st := conn.Stats()
			if most := st.Retransmits * uint64(st.Packet); st.BytesAgain > most {
				t.Errorf("loss %v: %d bytes in %d symbols of at most %d", loss, st.BytesAgain, st.Retransmits, st.Packet)
			}
		}
		// The client sends the payload, of which a tenth is lost and some more with it.
		if st := s.conns[0].Stats(); loss == 0 && st.BytesAgain != 0 || loss > 0 && (st.BytesAgain < 50_000 || st.BytesAgain > 400_000) {
			t.Errorf("loss %v: %d bytes again", loss, st.BytesAgain)
		}
	}
}
