// Package bpf brings congestion controls along that a kernel lacks: TCP-radio,
// TCP-radio-newRTO, Westwood+ and Veno as eBPF (docs/tcp-variants.md). Comes in: the
// name of one, and a socket that shall have it. Goes out: a socket that has it.
//
// The sources are in kernel, one of C for each; objects has what make generate
// compiled of them. Each is registered in the kernel under a name of its own,
// lt_…, which no other version of it has: all processes of a machine share what
// the first of them has registered, and none takes another's for its own.
//
// Westwood+ and Veno follow the kernel's own sources, so theirs are licensed under
// GPL-2.0, as these are; the kernel runs the objects, which are programs of their
// own and not linked with this one.
package bpf
