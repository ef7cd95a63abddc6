package core

import "linktrial/protocols/haul/wire"

// A symbol is what the code works on: some items of reliable messages, sent as
// they are, and combined with others in repairs.
type symbol struct {
	data  []byte
	parts []part
	bytes int    // payload of the application
	last  uint64 // number of the packet that carried it last
	sends int
	state symbolState
}

type symbolState uint8

const (
	flying  symbolState = iota // sent, and not known to be lost
	missed                     // known not to have arrived with packet last
	arrived                    // acknowledged
	void                       // given up
)

// part is the piece of a message that is in a symbol.
type part struct {
	of *outMessage
	span
}

// control reports whether the symbol has items that are no messages' data.
func (s *symbol) control() bool {
	var i wire.Item
	for b := s.data; len(b) > 0; {
		rest, err := wire.NextItem(b, &i)
		if err != nil || i.Kind != wire.ItemFragment {
			return true
		}
		b = rest
	}
	return false
}
