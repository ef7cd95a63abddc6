package protocoltest

import (
	"fmt"
	"math/rand/v2"
)

// addresses are those of both ends, drawn anew for each suite like those that drivers find
// in runs: a driver must not be able to tell the suite from one.
type addresses struct {
	client, client2, client6, clientRouter string
	server, server2, server6, serverRouter string
	// nowhere is an address that no route leads to.
	nowhere string
}

// drawAddresses draws the emulated radios' addresses half of the time, and otherwise
// private ones (RFC 1918, RFC 4193), as on sites with real radios. All of one family are of
// one network, as on a radio.
func drawAddresses() addresses {
	net, client, server := "10.77.0", 1, 3
	if rand.IntN(2) == 0 {
		net = fmt.Sprintf("10.%d.%d", rand.IntN(256), rand.IntN(256))
		if rand.IntN(2) == 0 {
			net = fmt.Sprintf("192.168.%d", rand.IntN(256))
		}
		client, server = 1+rand.IntN(10), 11+rand.IntN(10)
	}
	at := func(host int) string { return fmt.Sprintf("%s.%d", net, host) }
	net6 := fmt.Sprintf("fd%02x:%x:%x:%x", rand.IntN(256), rand.IntN(1<<16), rand.IntN(1<<16), rand.IntN(1<<16))
	return addresses{
		client: at(client), client2: at(client + 30), clientRouter: at(253), client6: fmt.Sprintf("%s::%x", net6, client),
		server: at(server), server2: at(server + 30), serverRouter: at(254), server6: fmt.Sprintf("%s::%x", net6, server),
		nowhere: fmt.Sprintf("100.%d.%d.%d", 64+rand.IntN(64), rand.IntN(256), 1+rand.IntN(254)), // RFC 6598
	}
}
