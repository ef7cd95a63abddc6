package telemetrysource

import (
	"context"
	"errors"
	"time"

	"linktrial/internal/nodesensor"
	"linktrial/internal/yamldoc"
)

// KindHost is the laptop's own power supply, and its temperature.
const KindHost Kind = "host"

// nodeInterval and radioInterval are the times between two readings, of what is beside the
// laptop and of a radio, where a profile states none.
const (
	nodeInterval  = 5 * time.Second
	radioInterval = 10 * time.Second
)

var hostKind = Definition{
	Kind: KindHost, Title: "the laptop", About: AboutNode,
	Help:  "the laptop's battery and temperature",
	Tells: "charge, whether a battery is discharging, and temperature", Poll: PollAlways, Interval: nodeInterval,
	settings: func() Settings { return &Host{} },
}

// Host has no settings.
type Host struct{}

func (*Host) parse(yamldoc.Mapping, *Source) {}

func (*Host) way(*Source) string { return "the laptop’s power supply and sensors" }

// read reads the laptop's power supply, and its temperature; of either only what the
// laptop has.
func (*Host) read(_ context.Context, _ *Source, _ string, n *Node) (out []Reading, err error) {
	power, thermal := n.PowerSupplies, n.ThermalZones
	if power == "" {
		power = nodesensor.PowerSupplies
	}
	if thermal == "" {
		thermal = nodesensor.ThermalZones
	}
	if b, there := nodesensor.ReadBattery(power); there {
		draining := 0.0
		if b.Discharging {
			draining = 1
		}
		out = append(out, Reading{Name: "charge", Value: 100 * b.Charge, Unit: "%"}, Reading{Name: "discharging", Value: draining})
	}
	if c, there := nodesensor.ReadTemperature(thermal); there {
		out = append(out, Reading{Name: "temperature", Value: c, Unit: "°C"})
	}
	if len(out) == 0 {
		return nil, errors.New("this node has no battery that reports its charge, and no sensor of its temperature")
	}
	return out, nil
}
