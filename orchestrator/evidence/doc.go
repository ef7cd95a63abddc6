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
//	check.go    a stranger's bag is checked: the verdict, its checks and findings. A file each:
//	            check_bag.go (BagIt, digests), check_signature.go, check_sheets.go,
//	            check_journals.go, check_statements.go, check_contents.go
//	rebuilt.go  what came of making the exported files again
//	open.go     a stranger's bag is opened, within bounds: read_zip.go, read_folder.go,
//	            read_names.go, read_manifest.go, read_index.go, read_journal.go
//	reasons.go  journals of which something is not there, by the reason
//	layout.go   where what is in a bag, and evidence.json, which says it to programs
package evidence
