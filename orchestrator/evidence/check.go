package evidence

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"linktrial/internal/signature"
)

// State is how a check ended. Closed list.
type State string

// The states of checks.
const (
	Passed     State = "passed"
	Failed     State = "failed"
	Partly     State = "partly checked" // without findings, and something could not be looked at
	NotChecked State = "not checked"
)

// Codes of the checks, in the order of a verdict.
const (
	CheckBag        = "bag"
	CheckDigests    = "digests"
	CheckSignature  = "signature"
	CheckSheets     = "sheets"
	CheckJournals   = "journals"
	CheckStatements = "statements"
	CheckContents   = "contents"
)

// Verdict is what the check of a bag found.
type Verdict struct {
	Bag      string    `json:"bag"`
	Campaign string    `json:"campaign"`
	Plan     string    `json:"plan"`
	Packed   time.Time `json:"packed"`
	PackedBy string    `json:"packed_by,omitempty"`
	Version  string    `json:"version"`
	Checks   []*Check  `json:"checks"` // always all of them, in the same order
	// Signed is what is signed, and by whom.
	Signed []Signed `json:"signed"`
	// Means is what the signatures prove and what they do not: a sentence each.
	Means []string `json:"means"`
	// Rebuilt is nil where the exported files were not made again.
	Rebuilt *Rebuilt `json:"rebuilt,omitempty"`
}

// Signed is a signature that holds.
type Signed struct {
	What string `json:"what"` // the bag, a run sheet, a journal
	By   string `json:"by"`   // orchestrator, or the name of a node
	// Key is the key's identity as linktrial signing keys prints it, or the fingerprint of a
	// node's key as OpenSSH prints it.
	Key   string    `json:"key"`
	Known bool      `json:"known"`       // this machine knows the key, or the authority that certified it
	At    time.Time `json:"at,omitzero"` // by the signer's clock, where what is signed has it
}

// Check is one thing that was to be proved.
type Check struct {
	Code   string `json:"check"` // one word, for programs
	Proves string `json:"proves"`
	State  State  `json:"state"`
	// Objects is how many of Unit were looked at.
	Objects int    `json:"objects"`
	Unit    string `json:"unit"`
	// Why is what was not looked at, or is not there to be looked at, and for what reason.
	Why      []string  `json:"not_checked_because,omitempty"`
	Notes    []string  `json:"notes,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	// More is how many findings there are beyond those listed.
	More int `json:"more_findings,omitempty"`
}

// Finding is one thing that is not as it has to be.
type Finding struct {
	File    string `json:"file"`
	Message string `json:"message"`
}

// String is the finding on one line, for people.
func (f Finding) String() string { return f.File + ": " + f.Message }

// maxListed is how many findings, notes and reasons of a check are listed.
const maxListed = 100

func (c *Check) find(file, format string, args ...any) {
	if len(c.Findings) == maxListed {
		c.More++
		return
	}
	c.Findings = append(c.Findings, Finding{file, fmt.Sprintf(format, args...)})
}

func (c *Check) skip(format string, args ...any) { c.Why = listed(c.Why, format, args...) }
func (c *Check) note(format string, args ...any) { c.Notes = listed(c.Notes, format, args...) }

func listed(list []string, format string, args ...any) []string {
	switch {
	case len(list) < maxListed:
		return append(list, fmt.Sprintf(format, args...))
	case len(list) == maxListed:
		return append(list, "and more of these")
	}
	return list
}

func (c *Check) settle() {
	switch {
	case len(c.Findings) > 0:
		c.State = Failed
	case c.Objects == 0 && len(c.Why) > 0:
		c.State = NotChecked
	case len(c.Why) > 0:
		c.State = Partly
	default:
		c.State = Passed
	}
}

// Findings is how many findings the checks have, and files made again that differ.
func (v *Verdict) Findings() int {
	n := 0
	for _, c := range v.Checks {
		n += len(c.Findings) + c.More
	}
	if v.Rebuilt == nil {
		return n
	}
	for _, f := range v.Rebuilt.Files {
		if f.Differs != "" {
			n++
		}
	}
	return n + len(v.Rebuilt.Problems)
}

// Check finds a check by its code; nil: there is none.
func (v *Verdict) Check(code string) *Check {
	for _, c := range v.Checks {
		if c.Code == code {
			return c
		}
	}
	return nil
}

// SignedBy is the key that signed the bag; nil: none did, or the signature does not hold.
func (v *Verdict) SignedBy() *Signed {
	for i := range v.Signed {
		if v.Signed[i].What == signedBag {
			return &v.Signed[i]
		}
	}
	return nil
}

// Known is what this machine knows beforehand of those who sign.
type Known struct {
	// Keys are of orchestrators; none: who signed the bag is not known here.
	Keys []signature.PublicKey
	From string // where the keys are from, for people
	// Authorities certify nodes.
	Authorities []*x509.Certificate
}

// checker checks one bag.
type checker struct {
	ctx      context.Context //nolint:containedctx // of one check, which lives no longer
	bag      *Bag
	trust    Known
	progress func(doing string, share float64)
	verdict  *Verdict

	inBag     signature.Keys      // of data/trust
	known     signature.Keys      // those of trust, and what they endorse
	authority []*x509.Certificate // of data/trust
	journals  map[string]bool     // files that were read as journals
	unsigned  JournalsByReason
	absent    JournalsByReason           // some records are not in the bag
	nodeKeys  map[string]map[string]bool // of certificates, by the node's name
	read      int64                      // bytes, for the progress
	total     int64
	file      string // that is being read
}

// Verify checks a bag: that it is whole, that nothing in it was changed, and who signed what.
// What is wrong is a finding of the verdict; an error means that the check has ended early.
// Progress may be nil; its share is of all bytes, from 0 to 1.
func Verify(ctx context.Context, bag *Bag, trust Known, progress func(doing string, share float64)) (*Verdict, error) {
	if progress == nil {
		progress = func(string, float64) {}
	}
	e := bag.Index
	c := &checker{ctx: ctx, bag: bag, trust: trust, progress: progress, verdict: &Verdict{
		Bag: bag.name, Campaign: e.Campaign, Plan: e.Plan, Packed: e.Packed, PackedBy: e.PackedBy, Version: e.Version,
		Checks: []*Check{
			{Code: CheckBag, Proves: "the bag has every file that its manifests name, and no other", Unit: "files"},
			{Code: CheckDigests, Proves: "no file was changed after the bag was packed", Unit: "files"},
			{Code: CheckSignature, Proves: "an orchestrator signed the bag as it is", Unit: "signatures"},
			{Code: CheckSheets, Proves: "the run sheets are those that the orchestrator signed", Unit: "run sheets"},
			{Code: CheckJournals, Proves: "each journal is whole, and of its run and node", Unit: "records"},
			{Code: CheckStatements, Proves: "each node signed its journal as it is in the bag", Unit: "journals"},
			{Code: CheckContents, Proves: "the bag has what its index names, and nothing else", Unit: "files"},
		},
	}}
	for _, f := range bag.files {
		c.total += f.size
	}
	steps := []func() error{c.checkBag, c.readTrust, c.checkSignature, c.checkSheets, c.checkNodes, c.checkDigests, c.checkSigners, c.checkContents}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	for _, x := range c.verdict.Checks {
		x.settle()
	}
	c.verdict.Means = c.means()
	return c.verdict, nil
}

func (c *checker) check(code string) *Check { return c.verdict.Check(code) }

// doing tells what is being read, and after how many bytes; the error is the context's.
func (c *checker) doing(file string) error {
	c.file = file
	c.progress(file, min(1, float64(c.read)/float64(max(c.total, 1))))
	return c.ctx.Err()
}

// get reads a small file. Where it is not there, or is not as its manifest has it, false is
// returned: checks of the bag and of digests have the finding.
func (c *checker) get(name string, limit int64) ([]byte, bool) {
	b, err := c.bag.Read(name, limit)
	if err != nil {
		c.wrong(name, err)
	}
	return b, err == nil
}

// wrong adds a finding of a file that could not be read as its manifest has it. That a file
// is not there is found by other checks, and so is one that no manifest names.
func (c *checker) wrong(name string, err error) {
	if _, _, ok := c.bag.digestOf(name); !ok || !c.bag.Has(name) {
		return
	}
	x, problem := c.check(CheckDigests), err.Error()
	var f *FileError
	if errors.As(err, &f) {
		problem = f.Problem
	}
	for _, old := range x.Findings {
		if old.File == name {
			return
		}
	}
	x.find(name, "%s", problem)
}
