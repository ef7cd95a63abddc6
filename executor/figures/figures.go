// Package figures holds what drivers report against what the executor, the
// node's interface and the emulated radio have seen. Each rule is one that no
// honest driver can break, whatever its protocol and however busy the machine
// is; docs/data-format.md has them in a table.
package figures

import (
	"fmt"
	"time"

	"linktrial/executor/journal"
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

// of is by how much a driver's time may differ from the given one.
func (t *Tolerance) of(d time.Duration) time.Duration {
	return t.Slack + time.Duration(t.Share*float64(d))
}

// Fault is a figure that cannot be true.
type Fault struct {
	Reason  string // of the verdict, one of journal's
	Message string // one sentence with both figures
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
	if lived := s.Result.Sub(s.Started); connect+elapsed > lived+t.of(lived) {
		return fault(journal.ReasonLongerThanRun, "the driver reports %s for connecting and %s for the transfer, its process had run for %s when it reported the result", show(connect), show(elapsed), show(lived))
	}
	if !s.Connected.IsZero() {
		between := s.Result.Sub(s.Connected)
		switch {
		case elapsed > between+t.of(between):
			return fault(journal.ReasonLongerThanRun, "the driver reports %s for the transfer, its result came %s after its connected event", show(elapsed), show(between))
		case elapsed < between-t.of(between):
			return fault(journal.ReasonShorterThanRun, "the driver reports %s for the transfer, its result came %s after its connected event", show(elapsed), show(between))
		}
	}
	if !s.Ready.IsZero() {
		if whole := s.Result.Sub(s.Ready); connect+elapsed < whole-t.of(whole) {
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

// End is what one end of a transfer reports of it.
type End struct {
	SizeBytes     int64
	Elapsed       time.Duration
	Digest        string
	Code, Message string // of an error of the server; it has no figures then
}

// Ends holds what the client reports of a transfer that succeeded against what
// the server reports. The server's clock runs from the header to the last byte,
// the client's from just after it sent the header until it has the server's
// answer to the last byte. How much longer the client's may be has no bound: the
// answer can be lost, and be sent again after any time. The tolerance is that of
// real time: the rule is for a server's clock, which is in no table.
func Ends(client, server *End) *Fault {
	switch {
	case server.Code != "":
		return fault(journal.ReasonServerFailed, "the client reports that the server accepted the payload, the server reports %s: %s", server.Code, server.Message)
	case client.SizeBytes != server.SizeBytes:
		return fault(journal.ReasonSizeDiffers, "the client reports %d bytes sent, the server %d bytes received", client.SizeBytes, server.SizeBytes)
	case client.Digest != server.Digest:
		return fault(journal.ReasonDigestDiffers, "the client reports the SHA-256 %s of what it sent, the server %s of what it received", client.Digest, server.Digest)
	case server.Elapsed > client.Elapsed+RealTime.of(client.Elapsed):
		return fault(journal.ReasonServerIsLonger, "the client reports %s from the header to the answer, the server %s from the header to the last byte", show(client.Elapsed), show(server.Elapsed))
	}
	return nil
}

// show is a time as people read it: to the millisecond.
func show(d time.Duration) string {
	if d < time.Millisecond {
		return d.String()
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}
