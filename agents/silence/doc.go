// Package silence keeps a node's control traffic off the radio while a trial
// runs, in runs with in-band control: there control traffic and measured
// transfers share the radio.
//
// A [Gate] is what all calls of the session with the orchestrator pass. A policy
// suspends and resumes it, as the node's role lets it know of trials:
//
//   - The client's agent leads, so it knows: [Leader] suspends calls from the
//     start of the first trial to the end of the last, but for one contact window at
//     each trial boundary, in which the agent delivers and polls, and for the
//     pauses that people command. A contact window in which no answer arrived makes the
//     next ones longer, up to [maxWindow].
//   - The server's agent needs no answer before the run is over. [Server]
//     suspends calls as soon as the preparation is delivered, and opens a window
//     only when its listeners have had no transfer for twice as long as a
//     connect may take ([runsheet.Sheet.IdleBeforeControl]). A window can therefore meet an attempt
//     only when that attempt, and the one before it, did not reach the server.
//   - A relay's agent leads nothing and serves nothing. [Relay] suspends calls when its
//     preparation is delivered, and opens a window when no trial has run for as long as
//     the server's listeners must be idle. Emulated radios tell whether one runs;
//     elsewhere the radio's interface does, where the packets of trials pass it
//     ([Forwarding]): in an outage of that length such a window can meet an attempt.
//     Where neither tells, as beside a mesh radio that relays by itself, its part in the
//     run ends with its preparation, and it calls when the sheet must be over, and
//     from then on now and then, for a run can take longer.
//
// Suspending ends every connection with a single RST: an orderly close would go
// on sending. What the orchestrator sent before it hears of that arrives within a
// round trip, for which the leading agent waits before the next trial.
//
// Comes in: what the executor tells its observer, and how far delivery is. Goes
// out: nothing; calls wait at the gate.
package silence
