// Package uml is the virtual-time lab: guests of User-Mode Linux in which idle
// time costs nothing, and a repeated run gives the same bytes.
//
// Comes in: run sheets, the linktrial binary, drivers; for [BuildKernel] the
// kernel's source package. Goes out: journals in a shared folder ([Run]), and a
// kernel in a cache. What runs inside a guest is lab/uml/guest.
//
// # Sharing the host's processors
//
// Linux with automatic groups (sched(7)) divides the processors among sessions first,
// so each guest has a session of its own with the nice value [guestNice]. A loop in
// another session on the guest's processor gets three times the guest's time (the
// weight of 5 is 335 of 1024). Without a nice value both got the same, with 10 the loop
// nine times as much.
//
// # Cost
//
// Every system call of a guest's program is a turn between two processes of the host
// (a signal, two futexes, two context switches, the registers copied there and back):
// 5 to 8 µs of processor time, with seccomp less than with ptrace. docs/virtual-time.md has
// the calls per packet and hop.
//
//   - From 256 kbit/s on the emulator makes most calls: 1.5 epoll_pwait, 1.2
//     timerfd_settime, 0.6 read, 0.5 write a packet and hop. An event loop needs 2.5
//     over two hops (a wait and a setting of the timer for each packet that comes out, a
//     wait for each that goes in, its reading and writing). The other 1.3 are wakes at
//     which no packet comes out: link.NextExit does not know of packets on the air
//     whether they only go to the relay.
//   - Below, samples make most calls: each wakes a driver and an agent, and in both the
//     monitor thread of Go's runtime, which an ordinary system call wakes from its rest
//     (nanosleep and futex: 6 of 23 calls). At 64 kbit/s there is a sample for every two
//     packets and hops.
//   - UDT's receiving thread waits 10 ms at a time (CRcvQueue::worker: 96 recvmsg a
//     second on each side): acknowledgements, NAKs and timeouts are handled between.
//
// Switches on the host for the same transfers (64 kbit/s and 1 MiB, 2 Mbit/s and 4 MiB)
// fell from 238 000 (TCP) and 353 000 (UDT) at 64 kbit/s and 353 000 (TCP) at 2 Mbit/s
// to 90 000, 114 000 and 109 000: half by the page of the clock, a quarter by the loop
// that waits past Go's scheduler (tun.Config.Shared), the rest by fewer wakes and reads.
//
// # What a build may change
//
// How much an agent allocates does not matter below 64 MiB a boot, where its collector
// does not run (GOGC=off, GOMEMLIMIT=64MiB): a build that allocated 300 KB more for
// every journal record gave the same nine trials to the byte (three drivers, 256 KiB);
// two builds between which other code had changed did not. The values in docs/ were
// measured before the collector was switched off.
package uml
