package evidence

// Rebuilt is what came of making a bag's exported files again from its journals
// (orchestrator/rpc/rebuild).
type Rebuilt struct {
	Files []RebuiltFile `json:"files"` // in the order of [Evidence.Exports]
	// Problems are contradictions between journals, rows and run sheets, and what of the
	// journals could not be taken: a sentence each.
	Problems []string `json:"problems,omitempty"`
	// Notes are what to know of differences and is no problem itself: a sentence each.
	Notes []string `json:"notes,omitempty"`
}

// RebuiltFile is one exported file of a bag, held against the one that was made again.
type RebuiltFile struct {
	File string `json:"file"` // as in [Export]
	Same bool   `json:"same"` // byte for byte
	// Differs is the first difference, in one sentence; empty where Same or NotMade is set.
	Differs string `json:"differs,omitempty"`
	// NotMade is why there is nothing to compare with; empty: the file was made again.
	NotMade string `json:"not_made,omitempty"`
}
