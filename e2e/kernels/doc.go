// Package kernels runs the drivers on the kernels that Debian ships, each in an
// emulated machine: make test-kernels. Its tests have the build tag kernels.
//
// Comes in: the drivers of make build, kernel packages of Debian. Goes out: a
// verdict on each thing that was tried, and the tables of docs/kernels.md. The
// tests that run inside a machine are in kernels/inside, its first process is
// kernels/guest, and kernels/machine boots it.
package kernels
