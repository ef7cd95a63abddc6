// Package guest is what runs inside a guest of the virtual-time lab: as the
// first process it mounts what it needs, makes a network namespace for each
// node, runs the emulated radios (emulator/tun, the same as in real time) and
// starts an agent in each node (processes of the same binary, which enter a [View]
// of their own), sheet by sheet, and powers the guest off.
//
// Comes in: [Job] in the shared folder. Goes out: the agents' journals there,
// and [Line]s on the console.
package guest
