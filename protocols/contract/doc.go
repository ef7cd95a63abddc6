// Package contract is what a protocol driver and Linktrial say to each other.
//
// A driver is a program. It reads one JSON document ([Parameters]) in one line
// from standard input, and as a client the payload after it. It writes JSON lines
// ([Event]) to standard output, and as a server the payload that arrived between
// them. It logs to standard error. docs/driver-contract.md is the same
// contract for people who write drivers in other languages.
//
// Comes in: JSON documents and lines, driver.yaml manifests. Goes out: checked
// Go values. May import: internal leaves and the standard library; it opens no
// sockets and starts no processes.
package contract
