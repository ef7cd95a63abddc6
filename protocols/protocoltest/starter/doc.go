// Package starter starts the drivers of the conformance suite as a node's agent starts
// them: from a process of its own for each end, whose command line is an agent's, confined
// in the same way, where root calls it in a PID namespace in which neither the suite nor
// the other end can be seen. A driver that looks at who started it sees no suite.
//
// The process is this program again: a program that imports the package must leave
// initialisation to it where it finds itself started so.
//
// Comes in: programs with their files and network namespaces. Goes out: running processes,
// and how they ended. May import: internal/confine, internal/process.
package starter
