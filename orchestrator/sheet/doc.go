// Package sheet compiles plans into run sheets and says how long they will take.
// Comes in: a plan. Goes out: run sheets, the same bytes for the same plan text
// and the same profiles, topologies and manifests. Pure: no clock, no files.
package sheet
