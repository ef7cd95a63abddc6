// Package bpf brings congestion controls along that a kernel lacks: TCP-radio,
// TCP-radio-newRTO, Westwood+ and Veno as eBPF (docs/tcp-variants.md). Comes in: the
// name of one, and a socket that shall have it. Goes out: a socket that has it.
//
// The sources are in kernel, one of C for each; objects has what make generate
// compiled of them with clang 14, 10 to 16 KB each, and make generate records their
// digests: neither a build nor a node needs a compiler. Each is registered in the
// kernel under a name of its own, lt_…, which no other version of it has: all
// processes of a machine share what the first of them has registered, and none takes
// another's for its own.
//
// To register radio, radio_newrto, westwood or veno, and to end that again, takes 46,
// 46, 52 or 57 ms (Linux 6.18, two processors of a shared virtual machine), 0.01 ms
// where another process has registered it: go test -run '^$' -bench . as root, part of
// make bench. Most of it is reading the kernel's type information, 5 MB. A listener's
// process spends it once, and each client's that finds nothing registered, before the
// driver is ready and thus outside the measured time. In a lab the listener's
// registration serves all.
//
// Westwood+ and Veno follow the kernel's own sources, so theirs are licensed under
// GPL-2.0, as these are; the kernel runs the objects, which are programs of their
// own and not linked with this one.
package bpf
