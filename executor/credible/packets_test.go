package credible

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
		"of no known size":               {pair, []radiocontrol.Traffic{there(client, server, client, server, 5001, ms(100), ms(200), 0)}, at(server), 1, 1, ""},
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
		x := []Times{{Flow{From: client, To: server, SizeBytes: 20_000, Elapsed: ms(c.elapsed)}, ms(c.connect)}}
		got := Packets(c.network, x, 1, c.traffic, c.stations)
		if reason(got) != c.want {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
	}
	short := Packets(pair, []Times{{Flow{From: client, To: server, Elapsed: ms(900)}, ms(60)}}, 1, direct, at(server))
	if !strings.Contains(short.Message, "0.900 s") || !strings.Contains(short.Message, "1.022 s") {
		t.Errorf("message %q does not have both values", short.Message)
	}
}

// Flows to one listener are held against its connections in order: each has one of its own.
func TestPacketsOfSeveral(t *testing.T) {
	ms := func(x float64) time.Duration { return time.Duration(x * 1e6) }
	client, relay, server := radio.RoleClient, radio.RoleRelay, radio.RoleServer
	pair := &radio.Network{MTUBytes: 120, Medium: radio.MediumFullDuplex, Links: []radio.Link{{A: client, B: server, RateBitsPerSecond: 80e3, Delay: ms(10)}}}
	chain := &radio.Network{MTUBytes: 120, Medium: radio.MediumFullDuplex, Links: []radio.Link{{A: client, B: relay, RateBitsPerSecond: 80e3, Delay: ms(10)}, {A: relay, B: server, RateBitsPerSecond: 80e3, Delay: ms(10)}}}
	type pairs [][2]float64 // of a flow the transfer and connecting, of a connection how long each took, without what follows its last packet
	for name, c := range map[string]struct {
		flows       int
		said, seen  pairs
		relayBeside bool
		want        string // in the message; empty: they may be true
	}{
		"each as its connection":     {2, pairs{{1022.1, 60}, {2022.1, 70}}, pairs{{2000, 60}, {1000, 50}}, false, ""},
		"the longer is shorter":      {2, pairs{{1022.1, 60}, {2000, 70}}, pairs{{2000, 60}, {1000, 50}}, false, "of 2 transfers to one listener the drivers report 2.000 s for the 2nd shortest; on the emulated radios the 2nd shortest of the connections to it took 2.022 s"},
		"the shorter is shorter":     {2, pairs{{1000, 60}, {2022.1, 70}}, pairs{{2000, 60}, {1000, 50}}, false, "1.000 s for the shortest;"},
		"both as the shorter":        {2, pairs{{1022.1, 60}, {1022.1, 70}}, pairs{{2000, 60}, {1000, 50}}, false, "1.022 s for the 2nd shortest;"},
		"connecting is shorter":      {2, pairs{{1022.1, 60}, {2022.1, 60}}, pairs{{2000, 60}, {1000, 50}}, false, "0.060 s for the 2nd shortest time of connecting; on the emulated radios the 2nd shortest took 0.070 s"},
		"one connection more":        {2, pairs{{1022.1, 60}, {1522.1, 65}}, pairs{{2000, 60}, {1000, 50}, {1500, 55}}, false, ""},
		"one that is not known":      {2, pairs{{10, 1}, {2022.1, 70}}, pairs{{2000, 60}}, false, ""},
		"the known one is shorter":   {2, pairs{{10, 1}, {2000, 70}}, pairs{{2000, 60}}, false, "2.000 s for the 2nd shortest;"},
		"one failed":                 {2, pairs{{1022.1, 60}}, pairs{{2000, 60}, {1000, 50}}, false, ""},
		"one failed, one is shorter": {2, pairs{{900, 60}}, pairs{{2000, 60}, {1000, 50}}, false, "of 1 transfers"},
		"all failed":                 {2, nil, pairs{{2000, 60}}, false, ""},
		"over a relay process":       {2, pairs{{1022.1, 60}, {2022.1, 70}}, pairs{{2000, 60}, {1000, 50}}, true, ""},
		"over one, shorter":          {2, pairs{{1022.1, 60}, {2000, 70}}, pairs{{2000, 60}, {1000, 50}}, true, "2.000 s for the 2nd shortest;"},
	} {
		n, stations := pair, []Station{{At: server, Port: 5001}}
		row := radiocontrol.Traffic{From: client, To: server, Source: client, Destination: server, DestinationPort: 5001}
		if c.relayBeside {
			n, stations = chain, []Station{{At: relay, Port: 5001}, {At: server, Port: 5002}}
			row.To, row.Destination = relay, relay
		}
		for i, x := range c.seen {
			began := ms(float64(100 * i))
			row.Connections = append(row.Connections, radiocontrol.Connection{FirstAt: began, AnsweredAt: began + ms(x[1]), FlowingAt: began + ms(200), CarriedAt: began + ms(200+x[0])})
		}
		var said []Times
		for _, x := range c.said {
			said = append(said, Times{Flow{From: client, To: server, Elapsed: ms(x[0])}, ms(x[1])})
		}
		other := row
		other.DestinationPort, other.Connections = 5005, []radiocontrol.Connection{{FirstAt: 1, AnsweredAt: ms(1), FlowingAt: ms(2), CarriedAt: ms(1e6)}}
		got := Packets(n, said, c.flows, []radiocontrol.Traffic{other, row}, stations)
		if (got != nil) != (c.want != "") || got != nil && (got.Reason != journal.ReasonFasterThanPackets || !strings.Contains(got.Message, c.want)) {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
	}
	beside := []Station{{At: client, Port: 5003}, {At: server, Port: 5001}}
	row := radiocontrol.Traffic{From: client, To: server, Source: client, Destination: server, DestinationPort: 5001, Connections: []radiocontrol.Connection{{FirstAt: 1, AnsweredAt: ms(50), FlowingAt: ms(60), CarriedAt: ms(100)}}}
	if got := Packets(pair, []Times{{Flow{From: client, To: server, Elapsed: ms(70)}, 1}}, 2, []radiocontrol.Traffic{row}, beside); got != nil {
		t.Errorf("connecting over a relay process beside the client: %+v", got)
	}
}

// Transfers are not shorter than what left the node took, but for 2 ms and a thousandth.
func TestLeft(t *testing.T) {
	ms := func(x float64) time.Duration { return time.Duration(x * 1e6) }
	type pairs [][2]float64 // transfer and connecting
	for name, c := range map[string]struct {
		said, seen pairs
		whole      float64
		want       string
	}{
		"as long":                       {pairs{{1000, 50}}, pairs{{1000, 50}}, 0, ""},
		"by tolerance less":             {pairs{{997.1, 48.1}}, pairs{{1000, 50}}, 0, ""},
		"shorter":                       {pairs{{996.9, 50}}, pairs{{1000, 50}}, 0, "the driver reports 0.997 s for the transfer, on this node's radio 1.000 s passed"},
		"connecting is shorter":         {pairs{{1000, 47.9}}, pairs{{1000, 50}}, 0, "the driver reports 0.048 s for connecting, on this node's radio 0.050 s passed"},
		"connecting is not known":       {pairs{{1000, 1}}, pairs{{1000, 0}}, 0, ""},
		"nothing is known":              {pairs{{1, 1}}, nil, 0, ""},
		"one left from before":          {pairs{{900, 40}}, pairs{{1000, 50}, {900, 40}}, 0, ""},
		"too few bytes":                 {pairs{{1, 1}}, pairs{{0, 50}}, 0, ""},
		"divided":                       {pairs{{1000, 1}}, pairs{{0, 50}, {0, 50}}, 1000, ""},
		"divided, shorter":              {pairs{{900, 1}}, pairs{{0, 50}, {0, 50}}, 1000, "0.900 s for the transfer"},
		"over one connection and more":  {pairs{{900, 50}}, pairs{{900, 50}, {0, 50}}, 1000, ""},
		"two":                           {pairs{{2000, 60}, {1000, 50}}, pairs{{1000, 50}, {2000, 60}}, 3000, ""},
		"two, the longer is shorter":    {pairs{{1900, 60}, {1000, 50}}, pairs{{1000, 50}, {2000, 60}}, 3000, "of 2 transfers to one listener, whose connections are taken in the same order, the driver of the 2nd shortest reports 1.900 s"},
		"two, divided":                  {pairs{{1, 1}, {1, 1}}, nil, 3000, ""},
		"two, one connection is known":  {pairs{{1, 1}, {2000, 60}}, pairs{{2000, 60}}, 0, ""},
		"two, one is known and shorter": {pairs{{1, 1}, {1900, 60}}, pairs{{2000, 60}}, 0, "2nd shortest reports 1.900 s"},
		"all failed":                    {nil, pairs{{2000, 60}}, 1000, ""},
	} {
		var said []Times
		for _, x := range c.said {
			said = append(said, Times{Flow{Elapsed: ms(x[0])}, ms(x[1])})
		}
		var seen []LeftConnection
		for _, x := range c.seen {
			seen = append(seen, LeftConnection{Took: ms(x[0]), Connecting: ms(x[1])})
		}
		got := Left(said, seen, ms(c.whole))
		if (got != nil) != (c.want != "") || got != nil && (got.Reason != journal.ReasonFasterThanPackets || !strings.Contains(got.Message, c.want)) {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
	}
}
