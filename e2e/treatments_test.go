package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"linktrial/internal/radio"
	"linktrial/internal/testkind"
	"linktrial/lab/field"
	"linktrial/lab/netns"
)

// mixedPlan has protocols over TCP and UDP, and one treatment that no node supports.
const mixedPlan = `
name: mixed
radio: prc-117g-anw2c
topology: vip-lot
size: 64 KiB
treatments:
  - {name: tcp, label: TCP, protocol: tcp, options: {congestion: cubic}}
  - {name: gone, label: TCP of another kernel, protocol: tcp, options: {congestion: nonexistent}}
  - {name: quic, label: QUIC, protocol: quic}
  - {name: udt, label: UDT, protocol: udt}
  - {name: haul, label: Haul, protocol: haul}
iterations: 1
seed: 1
limits: {connect: 5s, transfer: 30s}
`

// treatmentsCase is a filter of one node, and what the preflight then says of each
// treatment; empty: it works.
type treatmentsCase struct {
	name  string
	at    radio.Role
	block field.Block
	says  map[string]string
}

const silentServer = "blocked, before a connection was made: "

var treatmentsCases = []treatmentsCase{
	{name: "nothing is blocked"},
	{"UDP on its way into the server", radio.RoleServer, "udp-in", map[string]string{"quic": silentServer, "udt": silentServer, "haul": silentServer}},
	{"TCP on its way into the client", radio.RoleClient, "tcp-in", map[string]string{"tcp": "blocked, before a connection was made: "}},
}

// A preflight of a plan carries a transfer of each treatment over the real kernel, with
// packet filters of the nodes in the way: it says what works, what is blocked, and what
// the nodes do not have.
func TestPreflightOfTreatments(t *testing.T) {
	testkind.Waits("for exchanges that firewalls drop")
	p := newServed(t)
	p.lab("prc-117g-anw2c", "vip-lot")
	file := p.plan("mixed.yaml", mixedPlan)
	for _, c := range treatmentsCases {
		t.Run(c.name, func(t *testing.T) {
			if c.block != "" {
				end, err := field.Filter(p.held(), c.at, c.block)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := end(); err != nil {
						t.Error(err)
					}
				}()
			}
			out, code := p.cli("preflight", "--plan", file)
			if (code == 0) != (len(c.says) == 0) {
				t.Errorf("exit %d", code)
			}
			for _, name := range []string{"tcp", "gone", "quic", "udt", "haul"} {
				want := "works: 16 KiB in "
				switch {
				case name == "gone":
					want = "not carried: the plan has it as missing: the kernel of client and server has no congestion control nonexistent"
				case c.says[name] != "":
					want = c.says[name]
				}
				found := regexp.MustCompile(`(?m)^.* treatment .*\b` + name + `: .*$`).FindString(out)
				if !strings.Contains(found, name+": "+want) {
					t.Errorf("of %s it says %q, expected %q", name, found, want)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// held is the nodes of the orchestrator's lab, for faults of their networks.
func (p *served) held() *netns.Lab {
	var nodes []netns.NodeState
	for _, file := range p.namespaces() {
		name := filepath.Base(file)
		for _, role := range radio.Roles {
			if strings.HasSuffix(name, "-"+string(role)) {
				nodes = append(nodes, netns.NodeState{Role: role, Namespace: name})
			}
		}
	}
	return netns.Held(nodes)
}
