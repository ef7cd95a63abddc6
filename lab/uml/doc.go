// Package uml is the virtual-time lab: guests of User-Mode Linux in which idle
// time costs nothing, and a repeated run gives the same bytes.
//
// Comes in: run sheets, the linktrial binary, drivers; for [BuildKernel] the
// kernel's source package. Goes out: journals in a shared folder ([Run]), and a
// kernel in a cache. What runs inside a guest is lab/uml/guest.
package uml
