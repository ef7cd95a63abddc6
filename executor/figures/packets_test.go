package figures

import (
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// On one link at 80 kbit/s, whose way takes 10 ms, an answer takes 2.1 ms more.
func TestPackets(t *testing.T) {
	ms := func(x float64) time.Duration { return time.Duration(x * 1e6) }
	client, relay, server := radio.RoleClient, radio.RoleRelay, radio.RoleServer
	link := radio.Link{A: client, B: server, RateBitsPerSecond: 80e3, Delay: ms(10)}
	pair := &radio.Network{MTUBytes: 120, Medium: radio.MediumFullDuplex, Links: []radio.Link{link}}
	chain := &radio.Network{MTUBytes: 120, Medium: radio.MediumFullDuplex, Links: []radio.Link{{A: client, B: relay, RateBitsPerSecond: 80e3, Delay: ms(10)}, {A: relay, B: server, RateBitsPerSecond: 80e3, Delay: ms(10)}}}
	two := *pair
	two.Second = pair
	at := func(role radio.Role) []Station { return []Station{{At: role, Port: 5001}} }
	// There and back, with the port of the listener that the packets pass.
	there := func(from, to, source, destination radio.Role, port int, first, flowing, carried time.Duration) radiocontrol.Traffic {
		return radiocontrol.Traffic{From: from, To: to, Source: source, Destination: destination, DestinationPort: port, FirstAt: first, FlowingAt: flowing, CarriedAt: carried}
	}
	back := func(from, to, source, destination radio.Role, port int, arrived time.Duration) radiocontrol.Traffic {
		return radiocontrol.Traffic{From: from, To: to, Source: source, Destination: destination, SourcePort: port, ArrivedAt: arrived}
	}
	direct := []radiocontrol.Traffic{there(client, server, client, server, 5001, ms(100), ms(200), ms(1200)), back(server, client, server, client, 5001, ms(150))}
	overRelay := []radiocontrol.Traffic{
		there(client, relay, client, relay, 5002, ms(100), ms(200), ms(900)), there(relay, server, relay, server, 5001, ms(110), ms(300), ms(1200)),
		back(relay, client, relay, client, 5002, ms(150)), back(server, relay, server, relay, 5001, ms(140)),
	}
	for name, c := range map[string]struct {
		network          *radio.Network
		traffic          []radiocontrol.Traffic
		stations         []Station
		elapsed, connect float64
		want             string
	}{
		"as the packets":                 {pair, direct, at(server), 1022.1, 60, ""},
		"by tolerance less":              {pair, direct, at(server), 1019.2, 58.1, ""},
		"the transfer is shorter":        {pair, direct, at(server), 1019, 60, journal.ReasonFasterThanPackets},
		"connecting is shorter":          {pair, direct, at(server), 1022.1, 57.9, journal.ReasonFasterThanPackets},
		"a real radio":                   {nil, direct, at(server), 1, 1, ""},
		"two radios":                     {&two, direct, at(server), 1, 1, ""},
		"another port":                   {pair, direct, []Station{{At: server, Port: 5002}}, 1, 1, ""},
		"too little sent":                {pair, []radiocontrol.Traffic{there(client, server, client, server, 5001, ms(100), 0, ms(1200))}, at(server), 1, 1, ""},
		"several flows":                  {pair, []radiocontrol.Traffic{there(client, server, client, server, 5001, ms(100), ms(200), 0)}, at(server), 1, 1, ""},
		"answered before it was asked":   {pair, []radiocontrol.Traffic{direct[0], back(server, client, server, client, 5001, ms(99))}, at(server), 1022.1, 0, ""},
		"over a relay process":           {chain, overRelay, []Station{{relay, 5002}, {server, 5001}}, 1034.2, 60, ""},
		"over a relay process, shorter":  {chain, overRelay, []Station{{relay, 5002}, {server, 5001}}, 1028, 60, journal.ReasonFasterThanPackets},
		"a relay process beside each":    {pair, direct, []Station{{client, 5002}, {server, 5001}, {server, 5003}}, 1022.1, 0, ""},
		"beside each, shorter":           {pair, direct, []Station{{client, 5002}, {server, 5001}, {server, 5003}}, 1000, 0, journal.ReasonFasterThanPackets},
		"two kinds of packets":           {pair, append([]radiocontrol.Traffic{there(client, server, client, server, 5001, ms(120), ms(700), 0)}, direct...), at(server), 1022.1, 60, ""},
		"two kinds of packets, shorter":  {pair, append([]radiocontrol.Traffic{there(client, server, client, server, 5001, ms(90), ms(190), 0)}, direct...), at(server), 1022.1, 60, journal.ReasonFasterThanPackets},
		"all are beside the client":      {pair, direct, at(client), 1, 1, ""},
		"nothing passed at its listener": {pair, nil, at(server), 1, 1, ""},
	} {
		f := &Flow{From: client, To: server, SizeBytes: 20_000, Elapsed: ms(c.elapsed)}
		got := Packets(c.network, f, ms(c.connect), c.traffic, c.stations)
		if reason(got) != c.want {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
	}
	short := Packets(pair, &Flow{From: client, To: server, Elapsed: ms(900)}, ms(60), direct, at(server))
	if !strings.Contains(short.Message, "0.900 s") || !strings.Contains(short.Message, "1.022 s") {
		t.Errorf("message %q does not have both figures", short.Message)
	}
}

// A transfer is not shorter than what left the node took, but for 2 ms and a thousandth.
func TestLeft(t *testing.T) {
	ms := func(x float64) time.Duration { return time.Duration(x * 1e6) }
	for _, c := range []struct {
		elapsed, took float64
		want          string
	}{{1000, 1000, ""}, {997.1, 1000, ""}, {996.9, 1000, journal.ReasonFasterThanPackets}, {1, 0, ""}, {2000, 1000, ""}} {
		got := Left(&Flow{Elapsed: ms(c.elapsed)}, ms(c.took))
		if reason(got) != c.want {
			t.Errorf("%v ms, where packets took %v ms: %+v, expected %q", c.elapsed, c.took, got, c.want)
		}
	}
	if m := Left(&Flow{Elapsed: ms(900)}, ms(1000)).Message; !strings.Contains(m, "0.900 s") || !strings.Contains(m, "1.000 s") {
		t.Errorf("message %q does not have both figures", m)
	}
}
