package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"linktrial/executor/journal"
	"linktrial/internal/identity"
	"linktrial/internal/radio"
)

// Bounds of evidence.json.
const (
	maxIndex   = 16 << 20 // bytes
	maxRuns    = 10_000
	maxNodes   = 8 // of a run
	maxExports = 20_000
	maxTables  = 200
	maxMissing = 20_000
	maxText    = 4 << 10 // bytes of a sentence
	maxState   = 64
)

var (
	campaignID = regexp.MustCompile(`^[a-z0-9]{1,32}$`)
	tableName  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	keyID      = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

// decodeIndex reads evidence.json. What it says is not checked, but that it can be: bounds,
// names that can be parts of paths, nothing twice.
func decodeIndex(text []byte) (*Evidence, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	// The version comes first: a later one may have keys that this program does not know.
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("it is no index of a bag: %w", err)
	}
	if version.Format != Format {
		return nil, fmt.Errorf("format %d, this program reads %d", version.Format, Format)
	}
	dec.DisallowUnknownFields()
	var e Evidence
	if err := dec.Decode(&e); err != nil {
		return nil, fmt.Errorf("it is no index of a bag: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the index")
	}
	return &e, e.check()
}

func (e *Evidence) check() error {
	switch {
	case !campaignID.MatchString(e.Campaign):
		return fmt.Errorf("campaign %.80q, expected an identity of small letters and digits", e.Campaign)
	case e.Packed.IsZero():
		return errors.New("packed: the time is missing")
	case len(e.Runs) > maxRuns:
		return fmt.Errorf("it has %d runs, expected at most %d", len(e.Runs), maxRuns)
	case len(e.Exports) > maxExports:
		return fmt.Errorf("it has %d exported files, expected at most %d", len(e.Exports), maxExports)
	case len(e.Tables) > maxTables:
		return fmt.Errorf("it has %d tables, expected at most %d", len(e.Tables), maxTables)
	case len(e.Missing) > maxMissing:
		return fmt.Errorf("it has %d sentences on what is missing, expected at most %d", len(e.Missing), maxMissing)
	}
	for what, text := range map[string]string{"plan": e.Plan, "packed_by": e.PackedBy, "version": e.Version, "schema": e.Schema} {
		if err := checkText(text); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	for i, text := range e.Missing {
		if err := checkText(text); err != nil {
			return fmt.Errorf("missing, sentence %d: %w", i+1, err)
		}
	}
	runs := map[string]bool{"": true} // an exported file can be of none
	for i := range e.Runs {
		r := &e.Runs[i]
		if err := r.check(e.Campaign); err != nil {
			return err
		}
		if runs[r.ID] {
			return fmt.Errorf("run %s is there twice", r.ID)
		}
		runs[r.ID] = true
	}
	return e.checkFiles(runs)
}

func (r *Run) check(campaign string) error {
	number, ok := strings.CutPrefix(r.ID, campaign+"-")
	switch {
	case !ok || !campaignID.MatchString(number):
		return fmt.Errorf("run %.80q, expected one of campaign %s", r.ID, campaign)
	case len(r.Nodes) > maxNodes:
		return fmt.Errorf("run %s has %d nodes, expected at most %d", r.ID, len(r.Nodes), maxNodes)
	case !isSHA256(r.SheetHash):
		return fmt.Errorf("run %s: sheet_hash %.80q, expected a SHA-256 in 64 hexadecimal digits", r.ID, r.SheetHash)
	case r.SheetKey != "" && !keyID.MatchString(r.SheetKey):
		return fmt.Errorf("run %s: sheet_key %.80q, expected the identity of a key in 16 hexadecimal digits", r.ID, r.SheetKey)
	case checkText(r.State) != nil || len(r.State) > maxState:
		return fmt.Errorf("run %s: state %.80q, expected a word", r.ID, r.State)
	}
	for k := range r.Nodes {
		n := &r.Nodes[k]
		if err := n.check(); err != nil {
			return fmt.Errorf("run %s: %w", r.ID, err)
		}
		if slices.ContainsFunc(r.Nodes[:k], func(x Node) bool { return x.Name == n.Name || x.Role == n.Role }) {
			return fmt.Errorf("run %s: node %s or its role %s is there twice", r.ID, n.Name, n.Role)
		}
	}
	return nil
}

func (n *Node) check() error {
	if err := identity.CheckName(n.Name); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer}, radio.Role(n.Role)):
		return fmt.Errorf("node %s: role %.80q, expected client, relay or server", n.Name, n.Role)
	case n.Records < 0 || n.NotKept < 0:
		return fmt.Errorf("node %s: %d records, and %d that were not kept", n.Name, n.Records, n.NotKept)
	case !slices.Contains([]journal.RunEnd{"", journal.RunCompleted, journal.RunAborted, journal.RunStopped}, journal.RunEnd(n.Ended)):
		return fmt.Errorf("node %s: ended %.80q, expected completed, aborted or stopped", n.Name, n.Ended)
	}
	if err := checkText(n.Unsigned); err != nil {
		return fmt.Errorf("node %s: unsigned: %w", n.Name, err)
	}
	return nil
}

// checkFiles checks the names of exported files and tables.
func (e *Evidence) checkFiles(runs map[string]bool) error {
	seen := newNameSet()
	for _, x := range e.Exports {
		err := checkName(x.File)
		if err == nil {
			err = seen.add(x.File)
		}
		if err == nil {
			err = checkText(x.Format)
		}
		if err != nil {
			return fmt.Errorf("exported file %.200q: %w", x.File, err)
		}
		if !runs[x.Run] {
			return fmt.Errorf("exported file %s is of run %.80q, which is not in the index", x.File, x.Run)
		}
	}
	for i, t := range e.Tables {
		if !tableName.MatchString(t) || slices.Contains(e.Tables[:i], t) {
			return fmt.Errorf("table %.80q, expected each name once, of small letters, digits and underscores", t)
		}
	}
	return nil
}

// checkText returns why a text cannot be shown in a line.
func checkText(s string) error {
	switch {
	case len(s) > maxText:
		return fmt.Errorf("%d bytes, expected at most %d", len(s), maxText)
	case strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Errorf("%.80q has a control character", s)
	}
	return nil
}
