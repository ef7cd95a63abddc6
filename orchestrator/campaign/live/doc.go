// Package live holds what is known of runs beyond the store, for those who
// watch: how far the attempt that runs has come, its newest samples, what a run
// in preparation waits for, and a version that rises when the run's tables have
// changed. Comes in: deliveries that were stored, changes of state. Goes out:
// the state of each run, notice of every change.
package live
