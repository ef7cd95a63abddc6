package main

import (
	"testing"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest/link"
)

// TestLossyLink: over a slow link that loses packets, applications that know
// only TCP are faster with Haul between a proxy at either end.
func TestLossyLink(t *testing.T) {
	t.Parallel()
	split, tcp := programs(t)
	l, err := link.New([]string{"192.0.2.1"}, []string{"198.51.100.1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	l.Both(link.Conditions{BitsPerSecond: 2_000_000, Delay: 50 * time.Millisecond, Loss: 0.05})

	server := contract.Endpoint{Address: "198.51.100.1", Port: 7001}
	far := contract.Endpoint{Address: "198.51.100.1", Port: 7002}
	near := contract.Endpoint{Address: "192.0.2.1", Port: 7003}
	start(t, l.Server, tcp, &contract.Parameters{Role: contract.RoleServer, Local: server})
	start(t, l.Server, split, &contract.Parameters{Role: contract.RoleRelay, Local: far, Remote: server, Options: map[string]any{"accept": "haul"}})
	start(t, l.Client, split, &contract.Parameters{Role: contract.RoleRelay, Local: near, Remote: far, Options: map[string]any{"connect": "haul"}})

	const size, times = 256 << 10, 3
	var plain, proxied time.Duration
	for i := range times {
		plain += seconds(transfer(t, l.Client, tcp, server, size, 2*i))
		proxied += seconds(transfer(t, l.Client, tcp, near, size, 2*i+1))
	}
	t.Logf("256 KiB at 2 Mbit/s, 100 ms, 5 %% loss: TCP %s, TCP through Haul %s", plain/times, proxied/times)
	if proxied >= plain {
		t.Errorf("through Haul it took %s, plain TCP %s", proxied/times, plain/times)
	}
}
