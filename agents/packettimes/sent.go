package packettimes

import (
	"time"

	"linktrial/executor"
)

// Sent notes when the payload of transfers leaves this node, attempt by attempt, until
// [Sent.Close]. It implements [executor.PacketsSent].
type Sent struct {
	*notes
	given  []int               // ports with payloads
	before map[connection]bool // those of the attempts before
}

// StartSent begins to note. It needs the right to load programs into the kernel (CAP_BPF
// and CAP_NET_RAW).
func StartSent(devices ...string) (*Sent, error) {
	n, err := start(leaving, devices)
	if err != nil {
		return nil, err
	}
	return &Sent{notes: n, before: map[connection]bool{}}, nil
}

// Begin implements [executor.PacketsSent].
func (s *Sent) Begin(payloads map[int]executor.Payloads) error {
	if err := s.attach(); err != nil {
		return err
	}
	for _, port := range s.given {
		if err := s.expect(port, 0, 0); err != nil {
			return err
		}
	}
	s.given = nil
	for port, p := range payloads {
		if err := s.expect(port, p.Least, p.Sum); err != nil {
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
		s.before[k] = true
	}
	return nil
}

// Took implements [executor.PacketsSent].
func (s *Sent) Took() (connections []executor.PacketsTook, whole map[int]time.Duration, err error) {
	kept, err := s.kept()
	if err != nil {
		return nil, nil, err
	}
	for k, m := range kept {
		connections = append(connections, executor.PacketsTook{Port: int(k.Listener), Bytes: int64(m.Bytes), Took: m.took(), Connecting: m.connecting()})
	}
	whole = map[int]time.Duration{}
	for _, port := range s.given {
		if whole[port], err = s.whole(port, kept, s.before); err != nil {
			return nil, nil, err
		}
	}
	return connections, whole, nil
}

// Answered implements [executor.PacketsSent]. Of a datagram in fragments of IPv4 the first
// one counts.
func (s *Sent) Answered(port int) (int64, error) {
	if err := s.attach(); err != nil {
		return 0, err
	}
	return s.passed(port, answersPlace)
}
