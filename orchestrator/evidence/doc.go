// Package evidence is the bag of a campaign (docs/evidence.md): everything that its report
// rests on, in one ZIP file that can be checked without Linktrial. Comes in: files and what
// is known of a campaign, or a bag of a stranger. Goes out: a bag (BagIt, RFC 8493, with
// RO-Crate metadata) that the orchestrator signs; or what is signed by whom, what is missing
// and what was changed. It knows no database: rpc/packing gathers what a bag has, and
// rpc/rebuild makes tables and report of a bag's journals again.
//
// The files, from the top down:
//
//	write.go    a bag is written: the files of a campaign, and then what says what they are
//	bag.go      a BagIt folder in a ZIP file: names, digests, manifests, the signature
//	crate.go    its RO-Crate metadata
//	readme.go   what it says to people
//	layout.go   where what is in a bag, and evidence.json, which says it to programs
package evidence
