package core

import (
	"errors"
	"time"

	"linktrial/protocols/haul/wire"
)

// Priorities of messages: a higher one goes first.
const (
	LowestPriority  = 0
	HighestPriority = 7
)

// Message is one message to send.
type Message struct {
	Stream   uint16
	Class    wire.Class
	Priority uint8  // LowestPriority to HighestPriority
	Tag      uint32 // for Cancel and Replace; 0: none
	// SendBy is when the message is discarded if nothing of it has been sent,
	// DeliverBy when it is given up if it has not been delivered; 0: never.
	SendBy, DeliverBy time.Duration
	Data              []byte
}

// Received is a message that has arrived; or, of a stream that is read as
// bytes, a part of one.
type Received struct {
	Stream uint16
	Class  wire.Class
	Tag    uint32
	Data   []byte
	// End: the stream's class has no more messages; Data is empty.
	End bool
}

// Outcome is what became of a message.
type Outcome uint8

const (
	Delivered Outcome = iota + 1 // acknowledged as a whole (reliable classes)
	Sent                         // sent as a whole (other classes)
	Expired                      // a deadline passed
	Cancelled                    // by the application
)

// Errors of Send.
var (
	ErrTooLarge = errors.New("message is larger than the other end can hold")
	ErrFinished = errors.New("stream is finished")
	ErrClosed   = errors.New("connection is closed")
)

type span struct{ from, to int }

func classKey(stream uint16, c wire.Class) uint32 { return uint32(stream)<<2 | uint32(c) }

// messageCost is what a message counts beyond its data against the credit: what
// a receiver needs to keep it.
const messageCost = 16
