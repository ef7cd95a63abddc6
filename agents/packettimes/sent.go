package packettimes

import (
	"linktrial/executor"
)

// Sent notes when the payload of transfers leaves this node, attempt by attempt, until
// [Sent.Close]. It implements [executor.PacketsSent].
type Sent struct {
	*notes
	given []int // ports with a size
}

// StartSent begins to note. It needs the right to load programs into the kernel (CAP_BPF
// and CAP_NET_RAW).
func StartSent(devices ...string) (*Sent, error) {
	n, err := start(leaving, devices)
	if err != nil {
		return nil, err
	}
	return &Sent{notes: n}, nil
}

// Begin implements [executor.PacketsSent].
func (s *Sent) Begin(sizes map[int]int64) error {
	if err := s.attach(); err != nil {
		return err
	}
	for _, port := range s.given {
		if err := s.expect(port, 0); err != nil {
			return err
		}
	}
	s.given = nil
	for port, size := range sizes {
		if err := s.expect(port, size); err != nil {
			return err
		}
		s.given = append(s.given, port)
	}
	kept, err := s.kept()
	if err != nil {
		return err
	}
	for k := range kept {
		if err := s.forget(k); err != nil {
			return err
		}
	}
	return nil
}

// Took implements [executor.PacketsSent].
func (s *Sent) Took() ([]executor.PacketsTook, error) {
	kept, err := s.kept()
	var out []executor.PacketsTook
	for k, m := range kept {
		out = append(out, executor.PacketsTook{Port: int(k.Listener), Bytes: int64(m.Bytes), Took: m.took()})
	}
	return out, err
}
