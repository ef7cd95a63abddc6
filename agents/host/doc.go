// Package host measures what a node's processors keep from the programs of a trial: how
// late a thread with the drivers' priority is woken, and what the kernel says of the time
// that ready programs waited, that a hypervisor took, or that a bound on the processor
// held back. Comes in: the times of attempts. Goes out: [journal.HostLoad].
package host
