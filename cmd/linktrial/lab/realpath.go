package lab

import (
	"errors"
	"fmt"
	"strconv"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/lab/netns"
	"linktrial/orchestrator/catalog"
)

// madeUp is the manufacturer of a radio that does not exist.
const madeUp = "none"

// checkRealPath refuses sheets that plain interfaces cannot stand for.
func checkRealPath(cat *catalog.Catalog, sheets []*runsheet.Sheet) error {
	for _, s := range sheets {
		p := cat.Profile(s.Cell.Radio)
		switch {
		case p == nil:
			return fmt.Errorf("no radio %q; there are %v", s.Cell.Radio, cat.Profiles())
		case s.Cell.Radio != sheets[0].Cell.Radio:
			return fmt.Errorf("with --real-path every node has one radio, and the plan has %s and %s: keep one of them", sheets[0].Cell.Radio, s.Cell.Radio)
		case p.Manufacturer != madeUp:
			// The results would say that this radio was measured.
			return fmt.Errorf("--real-path measures virtual cables, so the plan's radio must be one that does not exist: a profile of a --catalog folder with 'manufacturer: none' and a rate; %s is of %s", p.Name, p.Manufacturer)
		case s.Topology.Second != nil:
			return fmt.Errorf("with --real-path every node has one radio, and the topology %s has a second one", s.Cell.Topology)
		}
		if _, err := cableRate(p); err != nil {
			return err
		}
	}
	return nil
}

// cableRate is the rate that a profile states, in bit/s.
func cableRate(p *radio.Profile) (float64, error) {
	f, ok := p.ParameterOf("rate")
	if !ok {
		return 0, fmt.Errorf("the profile %s states no rate, which --real-path needs: add a parameter to its list figures, such as {name: rate, value: 2 Mbit/s, source: chosen}", p.Name)
	}
	rate, err := unit.BitsPerSecond(strconv.FormatFloat(f.Value, 'f', -1, 64) + " " + f.Unit)
	if err == nil && rate <= 0 {
		err = errors.New("expected more than 0")
	}
	if err != nil {
		return 0, fmt.Errorf("rate of the profile %s: %w", p.Name, err)
	}
	return rate, nil
}

// plainConfig returns the configuration of a lab with plain radios at a topology.
func plainConfig(cat *catalog.Catalog, l labFlags) (netns.Config, error) {
	p, t := cat.Profile(l.radio), cat.Topology(l.topology)
	if t == nil {
		return netns.Config{}, fmt.Errorf("no topology %q; there are %v", l.topology, cat.Topologies())
	}
	rate, err := cableRate(p)
	if err != nil {
		return netns.Config{}, err
	}
	n := &radio.Network{}
	for _, s := range t.Stations {
		n.Nodes = append(n.Nodes, radio.Node{Role: s.Role, Address: radio.Addresses[s.Role]})
	}
	return netns.Config{Name: l.name, Radio: l.radio, Topology: l.topology, Network: n, Plain: &netns.Plain{BitsPerSecond: rate, Loss: airLoss(p)}}, nil
}

// airLoss is the probability with which packets of a radio are lost, where its emulation
// states that they are lost independently.
func airLoss(p *radio.Profile) float64 {
	if p.Emulation == nil || p.Emulation.Channel.Model != radio.ChannelUniform {
		return 0
	}
	return p.Emulation.Channel.Loss
}
