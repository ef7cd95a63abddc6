// Command scps is the driver of SCPS-TP. The protocol is not in it: between the
// driver's TCP connection and the radio runs a gateway of the SCPS reference
// implementation, which the user has built (docs/scps.md). Comes in and goes out:
// the driver contract (docs/driver-contract.md).
//
// Client and server are the same in structure, each in namespaces of its own:
//
//	lan namespace            gateway namespace                      the node's
//	TCP socket ── lan0 ═══ lan1 ── gateway ── wan0 (TUN) ── this driver ── UDP ── radio
//
//	build.go     which gateway there is, and what it is
//	site.go      the namespaces, and the gateway's process in them
//	carrier.go   packets between the TUN device and UDP
//	conn.go      TCP connections in the lan namespace
package main

import (
	"context"
	_ "embed"
	"os"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

//go:embed driver.yaml
var manifest []byte

func main() {
	code := harness.Run(manifest, harness.Driver{Query: query, Listen: listen, Dial: dial}, os.Stdin, os.Stdout, os.Stderr)
	closeAll()
	os.Exit(code)
}

// query also makes a client's end, which is to be there when the client connects.
func query(ctx context.Context, p *contract.Parameters) (*contract.Info, error) {
	b, err := findBuild(ctx)
	if err != nil {
		return nil, err
	}
	switch p.Role {
	case contract.RoleQuery:
		err = canMakeSite()
	case contract.RoleClient:
		err = prepare(ctx, p, b)
	}
	return b.info(), err
}
