package lab

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"linktrial/agents/telemetry"
	"linktrial/emulator/tun"
	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// The adapters read what the emulated radios of a real network of namespaces
// tell, each in its node's namespace.
func TestEmulatedRadiosTell(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces and TUN devices")
	}
	text, err := os.ReadFile("../../../radio-profiles/prc-117g-anw2c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	profile, err := radio.ParseProfile("p", text)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile("../../../topologies/vip-lot.yaml"); err != nil {
		t.Fatal(err)
	}
	topology, err := radio.ParseTopology("t", text)
	if err != nil {
		t.Fatal(err)
	}
	network, err := radio.Resolve(profile, topology)
	if err != nil {
		t.Fatal(err)
	}
	// The profile loses a packet in a hundred at a hop, and the counters below are exact.
	for i := range network.Links {
		network.Links[i].Channel, network.Links[i].Back = radio.Channel{Model: radio.ChannelUniform}, nil
	}
	cfg := tun.Config{Network: network, Telemetry: true}
	ns := map[radio.Role]string{}
	for _, n := range network.Nodes {
		name := fmt.Sprintf("lttel-%d-%s", os.Getpid(), n.Role)
		t.Cleanup(func() {
			if err := namespace.Remove(name); err != nil {
				t.Error(err)
			}
		})
		if err := namespace.Make(name); err != nil {
			t.Fatal(err)
		}
		ns[n.Role] = namespace.Path(name)
		cfg.Nodes = append(cfg.Nodes, tun.NodeConfig{Role: n.Role, NetNS: namespace.Path(name), Address: n.Address})
	}
	e, err := tun.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	// Something passes from the client to the server, through the relay.
	carry(t, ns, 3, 100)
	for _, role := range []radio.Role{radio.RoleClient, radio.RoleServer} {
		// The reading's sockets must be made by a thread inside the namespace: a
		// process of its own does that for an agent.
		c := exec.Command(os.Args[0], "-test.run=^TestTelemetryAsAgent$", "-test.v")
		c.Env = append(os.Environ(), agentEnv+"="+radio.Addresses[role])
		var out strings.Builder
		c.Stdout, c.Stderr = &out, &out
		if err := process.StartIn(c, ns[role]); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Fatalf("%s: %v\n%s", role, err, out.String())
		}
		for _, want := range []string{"radio-snmp in_bytes=300 B out_bytes=300 B dropped_packets=0 packets", "radio-http snr=", " queue=0 B", " rate=6800 kbit/s"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s tells\n%s\nwant\n%s", role, out.String(), want)
			}
		}
	}
}

// carry sends packets of some bytes, IP headers included, from the client to
// the server, which sends each back.
func carry(t *testing.T, ns map[radio.Role]string, packets, bytes int) {
	t.Helper()
	var at, from net.PacketConn
	for role, c := range map[radio.Role]*net.PacketConn{radio.RoleServer: &at, radio.RoleClient: &from} {
		err := process.InNamespace(ns[role], func() (err error) {
			*c, err = net.ListenPacket("udp4", radio.Addresses[role]+":9000")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer (*c).Close()
		if err := (*c).SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 2000)
	pass := func(a, b net.PacketConn) {
		t.Helper()
		if _, err := a.WriteTo(buf[:bytes-28], b.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		if n, _, err := b.ReadFrom(buf); err != nil || n != bytes-28 {
			t.Fatalf("%d bytes came: %v", n, err)
		}
	}
	for range packets {
		pass(from, at)
		pass(at, from)
	}
}

const agentEnv = "TELEMETRY_TEST_RADIO"

// TestTelemetryAsAgent is the reading process of the test above.
func TestTelemetryAsAgent(t *testing.T) {
	address := os.Getenv(agentEnv)
	if address == "" {
		return // not started by it
	}
	began := time.Now()
	for _, st := range telemetry.New(telemetry.Config{Sources: radio.EmulatedTelemetry(), Named: new(radio.Profile).TelemetryAddresses(true, radio.RoleClient), Radio: address}).Check(t.Context()) {
		fmt.Print(st.Source, st.Error)
		for _, v := range st.Values {
			fmt.Printf(" %s=%g %s", v.Name, v.Value, v.Unit)
		}
		fmt.Println()
	}
	t.Logf("read in %s", time.Since(began))
}
