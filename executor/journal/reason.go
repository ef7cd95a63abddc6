package journal

import "linktrial/protocols/contract"

// Reasons of verdicts that the executor gives, beside the codes of the driver
// contract. Closed list.
const (
	ReasonExited      = "exited"           // the driver ended without a result or an error
	ReasonCrashed     = "driver-crashed"   // the driver crashed: a signal that a fault of its own brings about, or a panic
	ReasonGarbage     = "garbage"          // the driver wrote what is no event, or events out of order
	ReasonFlood       = "flood"            // the driver wrote more than it may
	ReasonWrongResult = "wrong-result"     // a result of another transfer or size
	ReasonNoStart     = "no-start"         // the process could not be started, through a fault of its driver
	ReasonNoProcess   = "no-process"       // the node could not start the process, through no fault of its driver
	ReasonInterrupted = "interrupted"      // the agent died or was stopped; does not count as an attempt
	ReasonAborted     = "aborted"          // by command
	ReasonSkipped     = "skipped"          // a person ended the trial, and with it its running attempt
	ReasonNotNeeded   = "not-needed"       // the plan's rule to stop by ended the trial, before its first attempt
	ReasonRadioDown   = "radio-down"       // the emulated radio could not be reached
	ReasonElsewhere   = "source-elsewhere" // the flow starts on another node, which cannot be reached
	ReasonSourceDown  = "source-down"      // the node on which a flow starts failed to run it
	ReasonRelayDown   = "relay-down"       // a relay process that a flow passes was not in order, or its node
	ReasonServerDown  = "server-down"      // the listener of a flow was not in order, or its node
	ReasonKilled      = "killed"           // something outside ended the flow's driver process
	ReasonStopped     = "stopped"          // something outside stopped the flow's driver process, or this node's agent, and let it go on
	ReasonChanged     = "driver-changed"   // the flow's driver was replaced while it ran: what ran is not known
	ReasonHost        = "host-starved"     // the leading node's processors were too busy, by the plan's rule
	ReasonControl     = "control-traffic"  // control packets passed during an attempt of a run with in-band control
	ReasonForeign     = "foreign-traffic"  // other packets than the attempt's passed the emulated radios
	ReasonListener    = "listener-failed"  // a listener or relay process of the treatment does not stay up, through a fault of its driver

	ReasonPathDown     = "path-down"    // no packet passed between the leading node and one that the flow needs
	ReasonPathBlocked  = "path-blocked" // packets of the flow's kind do not pass, while others do
	ReasonUndetermined = "undetermined" // nothing that either end knows tells whose fault it was

	// Rules that a driver's values broke: the attempt is invalid, and no other
	// follows by itself.
	ReasonLongerThanRun   = "longer-than-run"   // more time than the driver's process ran
	ReasonShorterThanRun  = "shorter-than-run"  // less time than passed between its events
	ReasonMoreThanSent    = "more-than-sent"    // more payload than the interface or the emulated radio counted
	ReasonFasterThanRadio = "faster-than-radio" // than the emulated radio's rate
	ReasonFasterThanIdeal = "faster-than-ideal" // than a sender who knows the channel beforehand
	ReasonFewerThanLost   = "fewer-than-lost"   // fewer packets sent again than the emulated radio lost

	// less time than passed between the packets of the flow on the emulated radios
	ReasonFasterThanPackets = "faster-than-packets"
)

// Reasons that the orchestrator gives where the journals of both ends are
// together: no journal has them.
const (
	ReasonServerFailed   = "server-failed"    // the server reports an error of a transfer that the client reports as accepted
	ReasonSizeDiffers    = "size-differs"     // client and server report different sizes
	ReasonDigestDiffers  = "digest-differs"   // client and server report different digests
	ReasonServerIsLonger = "longer-at-server" // the server reports more time than the client, whose time contains the server's
)

// FreeUndetermined is how many attempts of a trial may be undetermined before one counts
// as one of those that its sheet allows: what nothing explains is mostly a fault of the
// apparatus that is over, and a trial must not be lost for it; but a driver that brings it
// about every time must not be repeated for ever.
const FreeUndetermined = 2

// FalseValue reports whether a reason names a rule that a driver's values
// broke. Another attempt would break it again, or pass by chance.
func FalseValue(reason string) bool {
	switch reason {
	case ReasonLongerThanRun, ReasonShorterThanRun, ReasonMoreThanSent, ReasonFasterThanRadio, ReasonFasterThanIdeal, ReasonFewerThanLost, ReasonFasterThanPackets:
		return true
	}
	return false
}

// Final reports whether no other attempt follows by itself one that is invalid for a
// reason: it would end like it, or pass by chance.
func Final(reason string) bool {
	return FalseValue(reason) || reason == string(contract.CodeBadParameters)
}

// ApparatusFault reports whether a reason is a fault of Linktrial, of a node or of the
// emulated radio. Such an attempt says nothing of the protocol: it is invalid, is
// repeated in its place, and is not one of those that a sheet allows.
func ApparatusFault(reason string) bool {
	switch reason {
	case ReasonRadioDown, ReasonSourceDown, ReasonRelayDown, ReasonServerDown, ReasonNoProcess, ReasonKilled, ReasonStopped, ReasonChanged, ReasonControl, ReasonForeign, ReasonPathDown, ReasonPathBlocked, ReasonHost:
		return true
	}
	return false
}
