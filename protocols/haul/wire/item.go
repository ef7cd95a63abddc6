package wire

import "encoding/binary"

// Class is how the messages of a stream are delivered. Each class of a stream
// counts its messages by itself, from 0.
type Class uint8

const (
	// Sequenced and reliable: every message, in the order in which it was first sent.
	ReliableSequenced Class = 0
	// Reliable alone: every message, as soon as it is complete.
	ReliableUnsequenced Class = 1
	// Sequenced alone: what is complete and newer than what was delivered.
	UnreliableSequenced Class = 2
	// Neither: what is complete.
	UnreliableUnsequenced Class = 3
)

// Reliable reports whether messages of the class are repeated until they have arrived.
func (c Class) Reliable() bool { return c&2 == 0 }

// Sequenced reports whether messages of the class are delivered in order.
func (c Class) Sequenced() bool { return c&1 == 0 }

// ItemKind is what an item of a symbol is.
type ItemKind uint8

const (
	ItemFragment ItemKind = iota // a part of a message
	ItemVoid                     // source symbols that will not be repeated
	ItemCancel                   // a message that will not be completed
	ItemFinish                   // a stream's class has no more messages
)

// Item is what symbols carry, one after another.
type Item struct {
	Kind   ItemKind
	Class  Class
	Last   bool   // ends its message
	Stream uint64 // 0 to MaxStream
	Number uint64 // of the message; ItemFinish: how many there were; ItemVoid: the first symbol
	Offset uint64 // of the fragment in the message; ItemVoid: how many symbols; ItemCancel: bytes of the message that have been sent
	Tag    uint64 // of the message, on its first fragment; 0 is none
	Data   []byte // the fragment
}

// Limits of what items may say.
const (
	MaxStream  = 1<<16 - 1
	MaxMessage = 1 << 26 // bytes of a message: 64 MiB
	MaxTag     = 1<<32 - 1
	MaxVoid    = 1 << 16 // symbols of one ItemVoid
)

// The first byte of an item: kind (bits 6 and 7), class (4 and 5), and flags.
const (
	flagLast   = 1 << 0 // the fragment ends its message
	flagEnd    = 1 << 1 // the fragment ends the symbol: it has no length
	flagOffset = 1 << 2 // the fragment does not begin its message
	flagTag    = 1 << 3 // the message has a tag
)

// HeadSize is the length of a fragment's head without its length.
func HeadSize(i *Item) int {
	var b [40]byte
	return len(appendHead(b[:0], i, flagEnd))
}

func appendHead(b []byte, i *Item, flags byte) []byte {
	flags |= byte(i.Kind)<<6 | byte(i.Class)<<4
	if i.Last {
		flags |= flagLast
	}
	if i.Kind == ItemFragment && i.Offset > 0 {
		flags |= flagOffset
	}
	if i.Tag != 0 && i.Offset == 0 {
		flags |= flagTag
	}
	b = append(b, flags)
	if i.Kind != ItemVoid {
		b = binary.AppendUvarint(b, i.Stream)
	}
	b = binary.AppendUvarint(b, i.Number)
	if flags&flagOffset != 0 || i.Kind == ItemVoid || i.Kind == ItemCancel {
		b = binary.AppendUvarint(b, i.Offset)
	}
	if flags&flagTag != 0 {
		b = binary.AppendUvarint(b, i.Tag)
	}
	return b
}

// AppendItem appends an item. With end, a fragment has no length and ends the symbol.
func AppendItem(b []byte, i *Item, end bool) []byte {
	if i.Kind != ItemFragment {
		return appendHead(b, i, 0)
	}
	if end {
		return append(appendHead(b, i, flagEnd), i.Data...)
	}
	b = appendHead(b, i, 0)
	b = binary.AppendUvarint(b, uint64(len(i.Data)))
	return append(b, i.Data...)
}

// NextItem reads the item at the beginning of a symbol and returns what follows
// it. Its data refers to the symbol.
func NextItem(b []byte, i *Item) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, ErrMalformed
	}
	flags := b[0]
	b = b[1:]
	*i = Item{Kind: ItemKind(flags >> 6), Class: Class(flags >> 4 & 3), Last: flags&flagLast != 0}
	if i.Kind != ItemFragment && flags&15 != 0 || i.Kind == ItemVoid && i.Class != 0 {
		return nil, ErrMalformed
	}
	if i.Kind != ItemVoid {
		if i.Stream, b, err = takeUpTo(b, MaxStream); err != nil {
			return nil, err
		}
	}
	if i.Number, b, err = takeUpTo(b, maxNumber); err != nil {
		return nil, err
	}
	switch i.Kind {
	case ItemVoid:
		if i.Offset, b, err = takeUpTo(b, MaxVoid); err != nil || i.Offset == 0 {
			return nil, ErrMalformed
		}
		return b, nil
	case ItemCancel:
		i.Offset, b, err = takeUpTo(b, MaxMessage)
		return b, err
	case ItemFragment:
		return nextFragment(b, i, flags)
	}
	return b, nil
}

func nextFragment(b []byte, i *Item, flags byte) (rest []byte, err error) {
	if flags&flagOffset != 0 {
		if i.Offset, b, err = takeUpTo(b, MaxMessage); err != nil || i.Offset == 0 || flags&flagTag != 0 {
			return nil, ErrMalformed
		}
	}
	if flags&flagTag != 0 {
		if i.Tag, b, err = takeUpTo(b, MaxTag); err != nil || i.Tag == 0 {
			return nil, ErrMalformed
		}
	}
	n := uint64(len(b))
	if flags&flagEnd == 0 {
		if n, b, err = readVarint(b); err != nil || n > uint64(len(b)) {
			return nil, ErrMalformed
		}
	}
	if i.Offset+n > MaxMessage || n == 0 && !i.Last {
		return nil, ErrMalformed
	}
	i.Data = b[:n]
	return b[n:], nil
}
