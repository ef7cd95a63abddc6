package agent

import (
	"sync/atomic"

	"linktrial/agents/disturbance"
	"linktrial/agents/host"
	"linktrial/agents/netif"
	"linktrial/agents/silence"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
)

// execution is this node's part in a run while it is executed: it gives the
// executor what it needs, and observes it.
type execution struct {
	run        *run
	encoded    []byte // the sheet
	sheet      *runsheet.Sheet
	journal    *journal.File
	watcher    *watcher
	silence    executor.Observer             // keeps calls off the radio while trials run
	begin      func()                        // called when the part has begun; nil: nothing
	radios     []netif.Radio                 // of this node that the run uses, first that of --device
	iface      *netif.Watches                // of the radios; nil: nobody watches them
	watch      *disturbance.Watch            // nil: nothing needs it
	endTraffic func()                        // ends the count of traffic; nil: there is none
	load       *host.Watch                   // of a node that does not lead; nil: no rule needs it
	count      atomic.Pointer[silence.Count] // of control traffic; nil: it is not counted here
}
