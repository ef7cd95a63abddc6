package evidence

import (
	"path"
	"time"
)

// Names of a bag's files, below its one folder (docs/evidence.md has the table).
const (
	Declaration  = "bagit.txt"
	Info         = "bag-info.txt"
	Manifest     = "manifest-sha256.txt"
	TagManifest  = "tagmanifest-sha256.txt"
	TagSignature = TagManifest + ".sig" // SSHSIG, namespace linktrial-evidence
	Signers      = "allowed_signers"    // for ssh-keygen -Y verify -f
	ReadMe       = "README.txt"

	Payload  = "data"
	Crate    = Payload + "/ro-crate-metadata.json"
	Index    = Payload + "/evidence.json" // [Evidence]
	Plan     = Payload + "/plan.yaml"
	Results  = Payload + "/results" // exported files, and the report
	Rows     = Payload + "/store"   // TABLE.jsonl, a row a line: what does not follow from the journals
	Drivers  = Payload + "/drivers" // PROTOCOL/driver.yaml
	Catalog  = Payload + "/catalog" // radio-profiles/, topologies/: NAME.yaml, as the orchestrator has them; what was run is in the run sheets
	Trust    = Payload + "/trust"   // [Authority], [SigningKeys], [EndorsedKeys]
	runsPath = Payload + "/runs"
)

// Of the folder trust: the certificate of the authority of the nodes' certificates, the keys
// that signed run sheets and the bag (internal/signature.FormatKeys), and of each of them but
// the first what the key before it signed of it (FormatEndorsed).
const (
	Authority    = Trust + "/authority.pem"
	SigningKeys  = Trust + "/signing-keys"
	EndorsedKeys = Trust + "/endorsed-keys"
)

// SheetSignature is sheet.signature.json: the signature of a run sheet, as
// internal/signature.SignSheet made it.
type SheetSignature struct {
	KeyID     string `json:"key_id"`
	Signature []byte `json:"signature"` // base64
}

// Folder is the one folder of a bag, in which all files are.
func Folder(campaign string) string { return "linktrial-" + campaign }

// SheetFile is where the run sheet is, as the nodes got it, and SheetSignatureFile the
// orchestrator's signature of it.
func SheetFile(run string) string          { return path.Join(runsPath, run, "sheet.json") }
func SheetSignatureFile(run string) string { return path.Join(runsPath, run, "sheet.signature.json") }

// JournalFile is a node's journal of a run, as the node wrote it up to its run-ended.
func JournalFile(run, node string) string { return path.Join(runsPath, run, node, "journal.jsonl") }

// StatementFile, StatementSignatureFile and CertificateFile are what the node signed of its
// journal (executor/journal.Statement), the signature (SSHSIG, namespace linktrial-journal),
// and the certificate (PEM) whose key made it.
func StatementFile(run, node string) string {
	return path.Join(runsPath, run, node, "statement.json")
}
func StatementSignatureFile(run, node string) string { return StatementFile(run, node) + ".sig" }
func CertificateFile(run, node string) string {
	return path.Join(runsPath, run, node, "certificate.pem")
}

// Format is the version of the layout and of evidence.json.
const Format = 1

// Evidence is evidence.json: what is in the bag, for programs.
type Evidence struct {
	Format   int       `json:"format"`
	Campaign string    `json:"campaign"`
	Plan     string    `json:"plan"` // its name
	Packed   time.Time `json:"packed"`
	PackedBy string    `json:"packed_by,omitempty"` // who asked for the bag; empty: nobody had logged in
	Version  string    `json:"version"`             // of Linktrial, which the exported files depend on
	Schema   string    `json:"schema"`              // of the store: the last migration
	Complete bool      `json:"complete"`            // no run is under way
	Runs     []Run     `json:"runs"`
	Exports  []Export  `json:"exports"`
	Tables   []string  `json:"tables"`            // of the folder store, in the order in which they can be stored
	Missing  []string  `json:"missing,omitempty"` // what the bag does not have, and why: a sentence each
}

// Run is one run of the campaign.
type Run struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	SheetHash string `json:"sheet_hash"`
	SheetKey  string `json:"sheet_key,omitempty"` // identity of the key that signed the sheet; empty: none did
	Nodes     []Node `json:"nodes"`
}

// Node is a node's part in a run.
type Node struct {
	Name     string `json:"name"`
	Role     string `json:"role"`
	Records  int64  `json:"records"`            // that the bag has of its journal
	Ended    string `json:"ended,omitempty"`    // completed, aborted or stopped; empty: the journal has no end
	Unsigned string `json:"unsigned,omitempty"` // why its journal has no signature; empty: it has one
	// SamplesDeleted is set where the samples of the run were deleted, by a rule that deletes
	// old ones: the journal in the bag lacks them, and its signature holds for the digests of
	// its records alone ([RecordDigests]).
	SamplesDeleted bool `json:"samples_deleted,omitempty"`
	// NotKept is how many records a version of Linktrial stored that did not keep them as they
	// were written. The bag lacks them, and nothing can be made again of the journal.
	NotKept int64 `json:"not_kept,omitempty"`
}

// RecordDigests has the SHA-256 of each record of a journal from which samples were deleted,
// in hexadecimal, a line each.
func RecordDigests(run, node string) string {
	return path.Join(runsPath, run, node, "records.sha256")
}

// Export is one exported file.
type Export struct {
	File   string `json:"file"`   // below the folder results
	Format string `json:"format"` // as linktrial results --format takes it
	// Run is set where the file is of one run; else it is of the campaign.
	Run string `json:"run,omitempty"`
}
