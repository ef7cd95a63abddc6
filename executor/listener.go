package executor

import (
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// listener keeps one process up that listens: a treatment's server, or a relay
// process that it passes.
type listener struct {
	runsheet.Listener
	node      *node
	transfers *transferTable
	port      int // the sheet's, or a spare one where that is taken
	restarts  int
	started   func()   // called when the journal has its state for the first time
	failure   string   // the last one that was recorded, so that a repeated one is recorded once
	why       string   // of that failure
	lost      []string // transfers that its process was carrying when it crashed the last time
}

// parameters are the listener's driver and what it is told.
func (l *listener) parameters() (protocol string, p *contract.Parameters, err error) {
	n, t, via := l.node, l.Treatment, l.Via
	if via == nil {
		p = n.parameters(t.Options, contract.RoleServer)
		p.Local = contract.Endpoint{Address: n.ownAddress(), Port: l.port}
		p.DSCP = t.DSCP
		if t.Passed(radio.RoleServer) {
			p.Device = "" // who connects is the relay process on this node
		} else if err := n.radios(p, t); err != nil {
			return "", nil, err
		}
		if t.Probe {
			p.Limits.TransferMS = ceilMS(longestProbe(n.sheet, t.Name))
		}
		return t.Protocol, p, nil
	}
	p = n.parameters(via.Options, contract.RoleRelay)
	p.DSCP = t.DSCP
	p.Local = contract.Endpoint{Address: n.ownAddress(), Port: l.port}
	p.Remote = contract.Endpoint{Address: n.addressOf(l.Next.At), Port: l.Next.Port}
	if via.At != radio.RoleRelay {
		p.Device = "" // one of its sides is on this node
	}
	if t.CompleteKnowledge && n.sheet.Network != nil {
		p.Link = linkKnowledge(n.sheet.Network, via.At, l.Next.At)
	}
	return via.Protocol, p, nil
}

// recorded is what every journal record of the listener has, whatever its state.
func (l *listener) recorded() journal.Listener {
	return journal.Listener{Treatment: l.Treatment.Name, At: l.At(), Port: l.port, Restarts: l.restarts}
}

// recordStop records that something outside has stopped the process, which may go on.
func (l *listener) recordStop() {
	const message = "something other than Linktrial stopped its process"
	l.node.listeners.outage(l.name(), Outage{Text: "was stopped from outside", Stopped: true}, message, l.node.Clock.Now())
	l.node.log.Warn("listener is stopped", "treatment", l.Treatment.Name, "at", string(l.At()))
	r := l.recorded()
	r.Code, r.Message, r.Outside, r.Stopped = contract.CodeInternal, message, true, true
	l.node.record.append(journal.TypeListenerFailed, r)
	l.node.record.syncNow()
}

// Why a listener is not up, in a sentence about it.
const (
	ofDriver     = "" // through a fault of its driver
	endedOutside = "was ended from outside"
	renewed      = "was ended to be started again" // what it knows of the interface may not be true any more
	waits        = "is started when all is in order"
	notStarted   = "could not be started"
	crashed      = "crashed" // through a fault of its driver, as well
)

// crashedBreach begins the message of the record that has the log of a listener which
// crashed, also of one that had been told to stop.
const crashedBreach = "the listener's process crashed: "

// recordFailure records that the listener is not up, and why. In a crash loop the same
// failure is recorded once.
func (l *listener) recordFailure(code contract.Code, message, why string) {
	message = clip(message)
	outside := why != ofDriver && why != crashed
	if outside {
		l.node.listeners.outage(l.name(), Outage{Text: why + ": " + message}, message, l.node.Clock.Now())
	} else {
		l.node.listeners.failed(l.name(), code, message, why == crashed)
	}
	l.node.log.Warn("listener is not up", "treatment", l.Treatment.Name, "at", string(l.At()), "code", string(code), "reason", message)
	// One that was ended from outside again is another outage.
	if l.failure == message && l.why == why && why != endedOutside && why != renewed {
		return
	}
	l.failure, l.why = message, why
	r := l.recorded()
	r.Code, r.Message, r.Outside, r.Renewed = code, message, outside, why == renewed || why == waits
	if why == crashed {
		r.Crashed, r.Transfers = true, l.lost
	}
	l.node.record.append(journal.TypeListenerFailed, r)
	l.node.record.syncNow()
	l.started()
}

// portHolder names the program that holds the listener's port; empty: none is known.
func (l *listener) portHolder(protocol string) string {
	n := l.node
	if n.PortHolder == nil {
		return ""
	}
	return n.PortHolder(n.networkOfProtocol(protocol), l.port)
}

// takeSparePort has the next start open another port, where the leading node is the only
// one that connects there, and the node has one left.
func (l *listener) takeSparePort() {
	n := l.node
	if l.Via != nil || len(l.Treatment.Via) > 0 || n.SparePorts.First == 0 {
		return
	}
	if port := n.SparePorts.First + int(n.spareTaken.Add(1)) - 1; port <= n.SparePorts.Last {
		l.port = port
	}
}

func (l *listener) name() journal.ListenerName { return nameOf(&l.Listener) }

func (l *listener) recordReady(info *contract.Info) {
	l.failure = ""
	r := l.recorded()
	r.Info = info
	// Before anybody hears of it: an attempt that began before the record would count as
	// one that met a listener which was not in order.
	l.node.record.append(journal.TypeListenerReady, r)
	l.node.listeners.ready(l.name(), l.port, l.node.Clock.Now())
	l.node.record.syncNow()
	l.started()
}

// recordBreach records a breach; at is where it happened, nil for no attempt.
func (l *listener) recordBreach(message, log string, at *place) {
	m := journal.Misbehaviour{Treatment: l.Treatment.Name, Message: clip(message), Log: tail(log, MaxLog)}
	if at != nil {
		m.Trial, m.Attempt = &at.trial, at.attempt
		if at.flow >= 0 {
			m.Flow = &at.flow
		}
	}
	l.node.record.append(journal.TypeDriverMisbehaved, m)
}
