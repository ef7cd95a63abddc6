package inside

// carries are the checks of the conformance suite that a treatment must pass to
// count as one that works on a kernel: transfers of several sizes, whose payload is held
// to the last byte, and one over a bad link.
var carries = []string{"size-0", "size-1", "size-1KiB", "size-1MiB", "lossy-link", "output", "exit-codes", "children"}

// carriesFew are those of what is brought along: each driver process loads it anew,
// which costs an emulated processor seconds.
var carriesFew = []string{"size-1MiB", "lossy-link", "output", "exit-codes", "children"}
