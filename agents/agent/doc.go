// Package agent ties together what runs on a node: it keeps runs in a state
// folder, resumes them after a crash without any control link, and lets the
// orchestrator's wishes move them on.
//
// Comes in: [Config], the orchestrator's assignments, with what people order of
// runs under way, and its wishes for preflights; or a run sheet file. Goes out:
// journals, in the state folder and delivered, reports of preflights, and what
// the node's radio tells.
//
// # Silence with in-band control
//
// Where control traffic shares the radio, nothing may be sent beside a
// measured transfer. The rules, by role:
//
//   - The client's agent leads, so it knows: it is silent from the start of the
//     first trial to the end of the last, but for one window at each trial
//     boundary, in which it delivers and polls, and for the pauses that people
//     order. A window is of at most [Config.Window]; one in which nothing was
//     heard makes the next ones longer, up to [windowMost].
//   - The server's agent needs to hear nothing before the run is over. It falls
//     silent as soon as its preparation is delivered, and opens a window only
//     when its listeners have carried no transfer for twice as long as a
//     connect may take ([quietAfter]). A window can therefore meet an attempt
//     only when that attempt, and the one before it, did not reach the server.
//   - A relay's agent cannot tell when a trial runs. It ends its part of the
//     run with its preparation and is silent for as long as the sheet can take
//     without repetitions. From then on it opens a window now and then, for a
//     run can take longer.
//
// Falling silent ends every connection with a single RST: an orderly close
// would go on sending.
package agent
