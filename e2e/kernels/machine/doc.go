// Package machine boots a kernel of a Debian package in an emulated machine and
// brings back what a program inside reports.
//
// Comes in: a kernel release, names of modules, files. Goes out: the records that
// the program inside wrote, and the console. The machine is qemu's, without
// hardware virtualisation; its time is that of the instructions that it has
// executed (a nanosecond each), and idle time costs nothing, so that a busy host
// changes no value. May import: internal.
//
// The way of one boot:
//
//	FindKernel   a kernel package of Debian, unpacked into a cache
//	modules.go   the wanted modules and what they depend on, in the order of loading
//	archive.go   the machine's file system: a cpio archive that the kernel unpacks, made
//	             for each boot: the first process (kernels/guest), the tests
//	             (kernels/inside), their modules, the drivers of bin/drivers with
//	             their libraries
//	Boot         qemu, followed until it ends; what it says goes to a file
package machine
