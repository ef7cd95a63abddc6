package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/campaign/nodes"
)

var (
	nodeInfo         = gauge("node_info", "1, with what the node registered as.", "node", "role", "version", "radio")
	nodeConnected    = gauge("node_connected", "Whether the node's agent is connected: 1, else 0.", "node")
	nodeNoContact    = gauge("node_no_contact", "1 where the node takes part in a run, should be in contact and has not been for 6 s; else 0.", "node")
	nodeSilent       = gauge("node_silent", "1 where the node's run has in-band control, in which no contact is normal; else 0.", "node")
	nodeContact      = gauge("node_last_contact_timestamp_seconds", "When the node was last in contact, by the orchestrator's clock.", "node")
	nodeDisk         = gauge("node_disk_free_bytes", "Free bytes on the disk of the node's journals, as it reported last.", "node")
	nodeBattery      = gauge("node_battery_ratio", "Charge of the node's battery, 0 to 1; absent: it has none, or does not report it.", "node")
	nodeDischarging  = gauge("node_battery_discharging", "Whether the node's battery discharges: 1, else 0; absent as the charge.", "node")
	nodeClock        = gauge("node_clock_offset_seconds", "The orchestrator's clock less the node's.", "node")
	nodeClockError   = gauge("node_clock_offset_error_seconds", "Bound of the error of that offset.", "node")
	nodeFaults       = gauge("node_faults", "What is wrong on the node and needs a person, as it reported last.", "node")
	telemetryReading = gauge("telemetry_reading", "Newest reading of a radio or host by a source of telemetry, in the unit that its label has; absent after a source has failed.", "node", "source", "name", "unit")
	telemetryAge     = gauge("telemetry_age_seconds", "Age of the newest readings of a source.", "node", "source")
	telemetryFailed  = gauge("telemetry_failed", "Whether the source could not be read last: 1, else 0.", "node", "source")

	nodeMetrics = []*prometheus.Desc{nodeInfo, nodeConnected, nodeNoContact, nodeSilent, nodeContact, nodeDisk, nodeBattery, nodeDischarging,
		nodeClock, nodeClockError, nodeFaults, telemetryReading, telemetryAge, telemetryFailed}
)

// sendNodes sends what is known of the nodes, and returns how many nodes and readings are
// left out. Nodes of a rehearsal in virtual time that is over are machines that never were.
func (s *state) sendNodes(e *exposition) (nodesLeftOut, readingsLeftOut int) {
	sent := 0
	missing := s.missing()
	for _, n := range s.engine.Nodes.List() {
		if n.Virtual && n.Run == "" {
			continue
		}
		if sent++; sent > mostNodes {
			nodesLeftOut++
			continue
		}
		e.send(nodeNoContact, oneIf(missing[n.Name]), n.Name)
		sendNode(e, &n)
		readingsLeftOut += s.sendHealth(e, &n)
	}
	return nodesLeftOut, readingsLeftOut
}

// missing returns the nodes that people are to be told have no contact.
func (s *state) missing() map[string]bool {
	out := map[string]bool{}
	for _, run := range s.engine.Nodes.RunsUnderWay() {
		for _, m := range s.engine.Nodes.Missing(run) {
			out[m.Name] = true
		}
	}
	return out
}

func sendNode(e *exposition, n *nodes.Node) {
	radio := n.Radio
	if n.Emulated {
		radio = "emulated"
	}
	e.send(nodeInfo, 1, n.Name, n.Role, n.Version, radio)
	e.send(nodeConnected, oneIf(n.Connected), n.Name)
	e.send(nodeSilent, oneIf(n.Silent), n.Name)
	e.send(nodeContact, timestamp(n.LastContact), n.Name)
	e.send(nodeDisk, float64(n.DiskFreeBytes), n.Name)
}

// sendHealth sends what a node reported with its polls, and returns how many readings are
// left out.
func (s *state) sendHealth(e *exposition, n *nodes.Node) (readingsLeftOut int) {
	h := s.fleet.Health(n.Name)
	if h.Battery != nil {
		e.send(nodeBattery, *h.Battery, n.Name)
		e.send(nodeDischarging, oneIf(h.Discharging), n.Name)
	}
	if h.ClockKnown {
		e.send(nodeClock, h.ClockOffset.Seconds(), n.Name)
		e.send(nodeClockError, h.ClockError.Seconds(), n.Name)
	}
	faults := 0
	for _, f := range h.Faults {
		if f.Run == "" || f.Run == n.Run { // that of an earlier run is the run's
			faults++
		}
	}
	e.send(nodeFaults, float64(faults), n.Name)
	left := mostReadings
	for _, t := range h.Aged(time.Now()) {
		e.send(telemetryAge, t.AgeSeconds, n.Name, t.Source)
		e.send(telemetryFailed, oneIf(t.Error != ""), n.Name, t.Source)
		readingsLeftOut += sendReadings(e, n.Name, t, &left)
	}
	return readingsLeftOut
}

func sendReadings(e *exposition, node string, t *linktrialv1.TelemetryState, left *int) (leftOut int) {
	if t.Error != "" {
		return 0
	}
	for _, v := range t.Values {
		if *left == 0 {
			leftOut++
			continue
		}
		*left--
		e.send(telemetryReading, v.Value, node, t.Source, v.Name, v.Unit)
	}
	return leftOut
}
