// Package haul is a message transport over UDP for radios that lose, delay and
// halve what they carry: reliable or not and sequenced or not for each message,
// with priorities, tags, deadlines, and streams of bytes over them. A loss costs
// its own airtime, and at the end of what there is to send no round trip either,
// because the sender repairs ahead of time. It is encrypted unless told otherwise.
// docs/haul-protocol.md specifies it.
//
// [Dial] and [Listen] make connections; [Conn.Send] and [Conn.Receive] carry
// messages, [Conn.Stream] bytes.
package haul

import "linktrial/protocols/haul/core"

// Errors that calls wrap, besides those of the system and [net.ErrClosed].
var (
	ErrRefused  = core.ErrRefused  // the other end does not take the connection
	ErrAborted  = core.ErrAborted  // the other end has aborted it: an AbortError
	ErrDead     = core.ErrDead     // nothing was heard for Options.DeadAfter
	ErrTooLarge = core.ErrTooLarge // the message is larger than half of the other end's buffer
)

// AbortError is why the calls of a connection fail that the other end has
// aborted, with the reason that it gave. It is ErrAborted for errors.Is.
type AbortError = core.AbortError
