package journal

// Reasons of verdicts that the executor gives, beside the codes of the driver
// contract. Closed list.
const (
	ReasonExited      = "exited"           // the driver ended without a result or an error
	ReasonGarbage     = "garbage"          // the driver wrote what is no event, or events out of order
	ReasonFlood       = "flood"            // the driver wrote more than it may
	ReasonWrongResult = "wrong-result"     // a result of another transfer or size
	ReasonNoStart     = "no-start"         // the process could not be started, through a fault of its driver
	ReasonNoProcess   = "no-process"       // the node could not start the process, through no fault of its driver
	ReasonInterrupted = "interrupted"      // the agent died or was stopped; does not count as an attempt
	ReasonAborted     = "aborted"          // by command
	ReasonSkipped     = "skipped"          // a person ended the trial, and with it its running attempt
	ReasonRadioDown   = "radio-down"       // the emulated radio could not be reached
	ReasonElsewhere   = "source-elsewhere" // the flow starts on another node, which cannot be reached
	ReasonSourceDown  = "source-down"      // the node on which a flow starts failed to run it
	ReasonRelayDown   = "relay-down"       // a relay process that a flow passes was not in order, or its node
	ReasonServerDown  = "server-down"      // the listener of a flow was not in order, or its node
	ReasonKilled      = "killed"           // something outside ended the flow's driver process
	ReasonStopped     = "stopped"          // something outside stopped the flow's driver process, or this node's agent, and let it go on
	ReasonControl     = "control-traffic"  // control packets passed during an attempt of a run with in-band control
	ReasonListener    = "listener-failed"  // a listener or relay process of the treatment does not stay up, through a fault of its driver

	// Rules that a driver's figures broke: the attempt is invalid, and no other
	// follows by itself.
	ReasonLongerThanRun   = "longer-than-run"   // more time than the driver's process ran
	ReasonShorterThanRun  = "shorter-than-run"  // less time than passed between its events
	ReasonMoreThanSent    = "more-than-sent"    // more payload than the interface or the emulated radio counted
	ReasonFasterThanRadio = "faster-than-radio" // than the emulated radio's rate
	ReasonFasterThanIdeal = "faster-than-ideal" // than a sender who knows the channel beforehand
)

// Reasons that the orchestrator gives where the journals of both ends are
// together: no journal has them.
const (
	ReasonServerFailed   = "server-failed"    // the server reports an error of a transfer that the client reports as accepted
	ReasonSizeDiffers    = "size-differs"     // client and server report different sizes
	ReasonDigestDiffers  = "digest-differs"   // client and server report different digests
	ReasonServerIsLonger = "longer-at-server" // the server reports more time than the client, whose time contains the server's
)

// FalseFigure reports whether a reason names a rule that a driver's figures
// broke. Another attempt would break it again, or pass by chance.
func FalseFigure(reason string) bool {
	switch reason {
	case ReasonLongerThanRun, ReasonShorterThanRun, ReasonMoreThanSent, ReasonFasterThanRadio, ReasonFasterThanIdeal:
		return true
	}
	return false
}

// ApparatusFault reports whether a reason is a fault of Linktrial, of a node or of the
// emulated radio. Such an attempt says nothing of the protocol: it is invalid, is
// repeated in its place, and is not one of those that a sheet allows.
func ApparatusFault(reason string) bool {
	switch reason {
	case ReasonRadioDown, ReasonSourceDown, ReasonRelayDown, ReasonServerDown, ReasonNoProcess, ReasonKilled, ReasonStopped, ReasonControl:
		return true
	}
	return false
}
