// Package protocols has the sources of the driver contract in Go and in C++, for
// projects outside of this repository (protocols/templates). What imports anything but
// the standard library, or only Linktrial's own end of the contract needs, is not among
// them. May import: nothing.
package protocols

import "embed"

// Go is the harness, and the packages that it imports except internal/unit.
//
//go:embed contract/capacity.go contract/doc.go contract/event.go contract/metric.go contract/manifest.go contract/messages.go contract/parameters.go contract/probe.go contract/wire.go
//go:embed harness/client.go harness/doc.go harness/driver.go harness/events.go harness/main.go harness/mark.go harness/packets.go
//go:embed harness/payload.go harness/pump.go harness/relay.go harness/sampler.go harness/server.go
var Go embed.FS

// CXX is the folder cxx but for its tests and its Makefile.
//
//go:embed cxx/*.cpp cxx/*.hpp
var CXX embed.FS
