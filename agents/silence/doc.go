// Package silence keeps a node's control traffic off the radio while a trial
// runs, in runs with in-band control: there control traffic and measured
// transfers share the radio.
//
// A [Gate] is what all calls of the session with the orchestrator pass. A policy
// suspends and resumes it, as the node's role lets it know of trials:
//
//   - The client's agent leads, so it knows: [Leader] suspends calls from the
//     start of the first trial to the end of the last, but for one window at
//     each trial boundary, in which the agent delivers and polls, and for the
//     pauses that people command. A window in which no answer arrived makes the
//     next ones longer, up to [maxWindow].
//   - The server's agent needs no answer before the run is over. [Server]
//     suspends calls as soon as the preparation is delivered, and opens a window
//     only when its listeners have had no transfer for twice as long as a
//     connect may take ([runsheet.Sheet.IdleBeforeControl]). A window can therefore meet an attempt
//     only when that attempt, and the one before it, did not reach the server.
//   - A relay's agent cannot tell when a trial runs. [Relay] ends its part of the
//     run with its preparation and suspends calls for as long as the sheet can
//     take without repetitions. From then on it opens a window now and then, for
//     a run can take longer. Where treatments pass relay processes on its node, its
//     part lasts as long as the run, and it opens a window also when its radio's
//     interface has sent next to nothing for as long as the server's must be idle.
//     In an outage of that length such a window can meet an attempt.
//
// Suspending ends every connection with a single RST: an orderly close would go
// on sending.
//
// Comes in: what the executor tells its observer, and how far delivery is. Goes
// out: nothing; calls wait at the gate.
package silence
