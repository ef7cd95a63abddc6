// Package protocoltest is the conformance suite of the driver contract: it runs
// a driver's real processes against each other in network namespaces of its
// own (on the loopback interface where it is not root) and says which of the
// contract's promises they keep.
//
// Comes in: a folder with driver.yaml and the program. Goes out: a [Report].
// May import: protocols/contract, protocoltest/link (the link on which packets are
// held, lost and counted), internal leaves, netlink; no driver.
package protocoltest
