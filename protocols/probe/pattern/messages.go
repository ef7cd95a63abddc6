package pattern

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/protocols/contract"
)

// Bounds of messages.
const (
	// MinMessage is the smallest message: what identifies its only packet has to fit.
	MinMessage = 20
	MaxMessage = 64 << 10
	// MaxMessages is how many are sent in turn, and MaxMessageSizes of how many sizes.
	MaxMessages     = 64
	MaxMessageSizes = contract.MaxMessageSizes

	minMessagePacket = 64
	// messageHeader is that of IPv4 and UDP (RFC 791, RFC 768), which pauses reckon with.
	messageHeader = 20 + 8
)

// Message is one message of a probe.
type Message struct {
	Number  int64 // from 0 on
	Bytes   int   // of payload, those of all packets
	Packets int
}

// readMessages takes the sizes, the packets and the rate of messages from options.
func (s *Spec) readMessages(options map[string]any) error {
	text, packet, rate := "20 100 1024 10240", 1200.0, 16.0
	if v, ok := options["messages"].(string); ok {
		text = v
	}
	if v, ok := number(options["message_packet"]); ok {
		packet = v
	}
	if v, ok := number(options["message_kbit_per_second"]); ok {
		rate = v
	}
	if !(packet >= minMessagePacket && packet <= MaxBytes) {
		return fmt.Errorf("option message_packet: expected %d to %d bytes, found %g", minMessagePacket, MaxBytes, packet)
	}
	if !(rate >= 0.1 && rate <= 1e6) {
		return fmt.Errorf("option message_kbit_per_second: expected 0.1 to 1000000, found %g", rate)
	}
	s.MessagePacket, s.MessageRate = int(packet), rate*1e3
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields) > MaxMessages {
		return fmt.Errorf("option messages: expected 1 to %d sizes in bytes, apart by spaces, found %d", MaxMessages, len(fields))
	}
	for _, f := range fields {
		bytes, err := strconv.Atoi(f)
		if err != nil || bytes < MinMessage || bytes > MaxMessage {
			return fmt.Errorf("option messages: expected sizes of %d to %d bytes, found %.60q", MinMessage, MaxMessage, f)
		}
		s.Messages = append(s.Messages, bytes)
	}
	if n := len(s.MessageSizes()); n > MaxMessageSizes {
		return fmt.Errorf("option messages: expected at most %d different sizes, found %d", MaxMessageSizes, n)
	}
	return nil
}

// MessageSizes are the different sizes of messages, the smallest first.
func (s *Spec) MessageSizes() []int {
	return slices.Compact(slices.Sorted(slices.Values(s.Messages)))
}

// PacketsOf is how many packets a message of a size has: as few as it can. They are of equal
// size but for a byte.
func (s *Spec) PacketsOf(bytes int) int { return (bytes + s.MessagePacket - 1) / s.MessagePacket }

// turnPackets is how many packets all messages have once.
func (s *Spec) turnPackets() (n int64) {
	for _, bytes := range s.Messages {
		n += int64(s.PacketsOf(bytes))
	}
	return n
}

// MessageOf is the message to which a packet belongs, by the packet's number.
func (s *Spec) MessageOf(packet int64) Message {
	turn := s.turnPackets()
	at, rest := packet/turn*int64(len(s.Messages)), packet%turn
	i := 0
	for ; rest >= int64(s.PacketsOf(s.Messages[i])); i++ {
		rest -= int64(s.PacketsOf(s.Messages[i]))
	}
	return Message{at + int64(i), s.Messages[i], s.PacketsOf(s.Messages[i])}
}

// MessagesIn is how many messages of a size so many packets are, all packets of each.
func (s *Spec) MessagesIn(packets int64, size int) (n int64) {
	turn := s.turnPackets()
	turns, rest := packets/turn, packets%turn
	for _, bytes := range s.Messages {
		if rest -= int64(s.PacketsOf(bytes)); bytes == size {
			n += turns
			if rest >= 0 {
				n++
			}
		}
	}
	return n
}

// pauseAfter is the time from the beginning of a message to that of the next one: in which
// the rate carries it, and packets are not more than may be sent.
func (s *Spec) pauseAfter(bytes int) time.Duration {
	packets := s.PacketsOf(bytes)
	own := time.Duration(float64(8*(bytes+packets*messageHeader)) / s.MessageRate * 1e9).Round(time.Microsecond)
	return max(own, time.Duration(packets)*shortest)
}

// drawnPause is by how much of itself a pause is lengthened at most: the seed draws it, so
// that messages do not keep step with what repeats on a radio.
const drawnPause = 0.1

// messageBits is the mean rate of payload of messages in bit/s.
func (s *Spec) messageBits() float64 {
	bits, seconds := 0.0, 0.0
	for _, bytes := range s.Messages {
		bits += float64(8 * bytes)
		seconds += s.pauseAfter(bytes).Seconds() * (1 + drawnPause/2)
	}
	return bits / seconds
}

// message is packet n: all packets of a message leave at once.
func (s *Source) message(n int) Packet {
	m := s.spec.MessageOf(int64(n))
	p := Packet{s.at, m.Bytes / m.Packets}
	if s.part < m.Bytes%m.Packets {
		p.Bytes++
	}
	if s.part++; s.part == m.Packets {
		pause := s.spec.pauseAfter(m.Bytes)
		s.part = 0
		s.at += pause + time.Duration(drawnPause*s.uniform()*float64(pause)).Round(time.Microsecond)
	}
	return p
}
