// Package credible holds what drivers report against what the executor, the
// node's interface and the emulated radio have seen. Each rule is one that no
// honest driver can break, whatever its protocol and however busy the machine
// is; docs/data-format.md has them in a table.
//
// Why there are no further rules:
//
//   - A transfer alone may take less than Ideal, whose clock starts with the channel's: a
//     fade may be over when the driver has connected. [Faster] compares the end on the
//     channel's clock.
//   - Nothing bounds a real radio's rate: a profile does not. Nor is the interface of a node
//     that does not know when the attempt began compared with anything.
//   - An answer that comes late, or is sent again, makes the client's time longer than the
//     server's by any amount. Counts of bytes, though, need no tolerance: payload cannot be
//     compressed, and a server counts what it has handed over ([Handed]).
//   - Packets that are sent again, repairs, and a radio that buffers much of a payload only
//     make the times of [Packets] and [Left] shorter.
package credible

import (
	"fmt"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radiocontrol"
)

// Tolerance is by how much times of two programs may differ.
type Tolerance struct {
	// Slack plus Share of it is by how much a driver's time may differ from the
	// executor's or the other end's.
	Slack time.Duration
	Share float64
	// Gap is what may pass between a driver's connected event and the start of
	// its clock, which counts neither as connecting nor as transfer.
	Gap time.Duration
}

var (
	// RealTime is the tolerance where programs wait for processors. The executor
	// sees events when it reads them: scheduling on a machine with many more
	// programs than processors delays that by up to some 100 ms, a container
	// engine between them by some 10 ms. Share is for two clocks that run apart;
	// those of one machine differ by less than a thousandth.
	RealTime = Tolerance{Slack: 500 * time.Millisecond, Share: 0.02, Gap: 50 * time.Millisecond}
	// VirtualTime is that of the virtual-time lab, where computing takes no time
	// and all programs have one clock.
	VirtualTime = Tolerance{Slack: 20 * time.Millisecond, Share: 0.005, Gap: 10 * time.Millisecond}
)

// At is the tolerance of a run by its place, as its provenance names it.
func At(place string) *Tolerance {
	if place == journal.PlaceVirtual {
		return &VirtualTime
	}
	return &RealTime
}

// Of is by how much a driver's time may differ from the given one.
func (t *Tolerance) Of(d time.Duration) time.Duration {
	return t.Slack + time.Duration(t.Share*float64(d))
}

// Fault is a value that cannot be true.
type Fault struct {
	Reason  string // of the verdict, one of journal's
	Message string // one sentence with both values
}

func fault(reason, format string, args ...any) *Fault {
	return &Fault{reason, fmt.Sprintf(format, args...)}
}

// Seen is when the executor read a client's events; zero: it did not.
type Seen struct {
	Started   time.Time // before the driver got its parameters
	Ready     time.Time
	Connected time.Time
	Result    time.Time
}

// Clock holds a client's times against those at which its events were read: the
// transfer lies between connected and result, connecting and transfer together
// lie between the driver's start and its result and take as long as from ready
// to result. It returns nil where they may be true.
func (s *Seen) Clock(connect, elapsed time.Duration, t *Tolerance) *Fault {
	if s.Result.IsZero() || s.Started.IsZero() {
		return nil
	}
	if lived := s.Result.Sub(s.Started); connect+elapsed > lived+t.Of(lived) {
		return fault(journal.ReasonLongerThanRun, "the driver reports %s for connecting and %s for the transfer, its process had run for %s when it reported the result", show(connect), show(elapsed), show(lived))
	}
	if !s.Connected.IsZero() {
		between := s.Result.Sub(s.Connected)
		switch {
		case elapsed > between+t.Of(between):
			return fault(journal.ReasonLongerThanRun, "the driver reports %s for the transfer, its result came %s after its connected event", show(elapsed), show(between))
		case elapsed < between-t.Of(between):
			return fault(journal.ReasonShorterThanRun, "the driver reports %s for the transfer, its result came %s after its connected event", show(elapsed), show(between))
		}
	}
	if !s.Ready.IsZero() {
		if whole := s.Result.Sub(s.Ready); connect+elapsed < whole-t.Of(whole) {
			return fault(journal.ReasonShorterThanRun, "the driver reports %s for connecting and %s for the transfer, its result came %s after its ready event", show(connect), show(elapsed), show(whole))
		}
	}
	return nil
}

// Sent holds the payload of all flows that a node sent in an attempt against
// what its interface has sent meanwhile: every byte of payload is in a packet.
func Sent(payload, counted int64) *Fault {
	if payload <= counted {
		return nil
	}
	return fault(journal.ReasonMoreThanSent, "the drivers report %d bytes of payload, the radio's interface sent %d bytes with all headers meanwhile", payload, counted)
}

// Handed holds a count of payload that a server says it has received against what it has
// handed over by then, which it counts no sooner (docs/driver-contract.md, W12). Common
// windows of several flows are made of such counts.
func Handed(counted, handed int64) *Fault {
	if counted <= handed {
		return nil
	}
	return fault(journal.ReasonMoreThanSent, "the server counts %d bytes of payload received, of which it had handed over %d by then", counted, handed)
}

// leastAnswer is fewer bytes than the other end of any transfer sends: it accepts the
// connection, and says that it has everything. Two ARP packets are not more.
const leastAnswer = 100

// Received holds the payload of all flows that arrived at a node in an attempt, and
// whether other ends have answered there, against what its interface has received
// meanwhile, and says what is wrong; empty: nothing. No driver sees which way the other
// end sends.
func Received(payload, counted int64) string {
	if max(payload, leastAnswer) <= counted {
		return ""
	}
	return fmt.Sprintf("what the other end sent did not come over the radio, whose interface received %d bytes with all headers meanwhile (%d bytes of payload): on the other node 'ip route get' to this node's radio address must name its radio's interface", counted, payload)
}

// End is what one end of a transfer reports of it.
type End struct {
	SizeBytes int64
	Elapsed   time.Duration
	Digest    string
	// Code and Message are of an error of the server, or say which rule its values broke by
	// themselves; it has no values then.
	Code, Message string
	// Packets is, at the server, how long it took from when the payload had begun until as
	// many bytes as it has had arrived over its radio; 0: that is not known.
	Packets time.Duration
}

// Ends holds what the client reports of a transfer that succeeded against what
// the server reports. The server's clock runs from the header to the last byte,
// the client's from just after it sent the header until it has the server's
// answer to the last byte. How much longer the client's may be has no bound: the
// answer can be lost, and be sent again after any time. The tolerance is that of
// real time: the rule is for a server's clock, which is in no table.
func Ends(client, server *End) *Fault {
	switch {
	case journal.FalseValue(server.Code):
		return &Fault{server.Code, server.Message}
	case server.Code != "":
		return fault(journal.ReasonServerFailed, "the client reports that the server accepted the payload, the server reports %s: %s", server.Code, server.Message)
	case client.SizeBytes != server.SizeBytes:
		return fault(journal.ReasonSizeDiffers, "the client reports %d bytes sent, the server %d bytes received", client.SizeBytes, server.SizeBytes)
	case client.Digest != server.Digest:
		return fault(journal.ReasonDigestDiffers, "the client reports the SHA-256 %s of what it sent, the server %s of what it received", client.Digest, server.Digest)
	case server.Elapsed > client.Elapsed+RealTime.Of(client.Elapsed):
		return fault(journal.ReasonServerIsLonger, "the client reports %s from the header to the answer, the server %s from the header to the last byte", show(client.Elapsed), show(server.Elapsed))
	case client.Elapsed < server.Packets-radioSlack-part(server.Packets, clockShare):
		return fault(journal.ReasonFasterThanPackets, "the client reports %s for the transfer, at the server's radio %s passed from when %d bytes had arrived until as many bytes as the payload has had",
			show(client.Elapsed), show(server.Packets), radiocontrol.Opening)
	}
	return nil
}

// clockShare is by how much clocks of two machines may run apart: each is slewed by at most
// 500 ppm (adjtimex(2)), and is off by less than 500 ppm where nothing corrects it.
const clockShare = 0.002

// show is a time as people read it: to the millisecond.
func show(d time.Duration) string {
	if d < time.Millisecond {
		return d.String()
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}
