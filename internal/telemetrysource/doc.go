// Package telemetrysource is what can be read of a radio, or of the laptop beside it: which
// kinds of sources there are, what a radio profile says of each, and how each is read.
//
// A kind is one [Definition] in one file, with its [Settings]; the list is [Kinds]. The keys
// and messages of the profile's parser, the readings, the preflight's remedies, the rules of
// validity, the words of pages and the table in radio-profiles/README.md follow from it.
//
// Comes in: a profile's list of sources, and what a [Node] offers. Goes out: readings, as
// the journal has them, or one clear sentence after a bounded time.
package telemetrysource
