package contract

import "time"

// How long Linktrial waits for a driver beyond what the contract bounds. The
// executor ends a driver that takes longer, and the conformance suite fails it:
// both use these values, and docs/driver-contract.md lists them. They must be
// longer than the delays of a busy laptop, the start of an interpreter among them.
const (
	// QueryPatience bounds a query from its start to its end.
	QueryPatience = 10 * time.Second
	// ReadyPatience bounds a server from its start to its ready event. A server
	// that ends by itself is started again.
	ReadyPatience = 15 * time.Second
	// LimitPatience is added to connect_ms, from a client's start to its
	// connected event, and to transfer_ms, from there to its last event.
	LimitPatience = 5 * time.Second
	// ExitPatience bounds a client from its last event to its exit.
	ExitPatience = 5 * time.Second
	// StopPatience is the time between SIGTERM and SIGKILL.
	StopPatience = 3 * time.Second
)
