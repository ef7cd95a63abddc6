// Package e2e tests the built program from outside, as a test director uses it: whole
// rehearsals with real processes, a real database and real network namespaces, and
// what happens when parts of them are killed. It needs bin/linktrial and bin/drivers
// of make build.
package e2e
