// Package faults is the fault campaign: it decides which faults are injected into a
// lab, and when, and injects them.
//
// Comes in: a schedule that a person writes, or a seed; and the processes and
// namespaces of a lab. Goes out: faults in the lab, and the list of them
// (internal/faultlog).
//
// Reading a schedule and drawing faults from a seed touch nothing of the machine;
// [Lab] does.
package faults
