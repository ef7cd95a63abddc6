package uml

import "fmt"

// A guest's memory. What the kernel, the agents and the drivers of few flows use has room
// in [defaultMemory]. Every flow has driver processes of its own. Without room for them a
// guest only reads its programs again and again, and shows no progress: fifty flows of
// Haul did so in 512 MiB.
const (
	flowsInDefault = 24
	flowMemory     = 16 << 20
	mostMemory     = 4 << 30
)

// MostFlows is how many flows and probes a trial may have at once in virtual time.
const MostFlows = flowsInDefault + (mostMemory-defaultMemory)/flowMemory

// MemoryFor returns the memory of a guest for trials of so many flows at once, in bytes.
// The error says what the bound is.
func MemoryFor(flows int) (bytes int64, err error) {
	if flows > MostFlows {
		return 0, fmt.Errorf("a trial has %d flows and probes at once; in virtual time there is room for the drivers of %d: make it fewer, or rehearse in real time", flows, MostFlows)
	}
	return defaultMemory + int64(max(0, flows-flowsInDefault))*flowMemory, nil
}
