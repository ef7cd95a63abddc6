// Package e2e drives the built program from outside, as a test director does:
// whole rehearsals with real processes, a real database and real network
// namespaces, and what happens when parts of them are killed. It holds tests
// only. Comes in: bin/linktrial and bin/drivers, as make build leaves them.
package e2e
