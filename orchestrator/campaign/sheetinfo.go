package campaign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
)

// sheetInfo is what the engine needs of a run sheet.
type sheetInfo struct {
	encoded   []byte
	hash      string
	signature signature.Signature
	listeners []journal.ListenerName // that the nodes have to open
	inBand    bool
	roles     []radio.Role  // of the topology's nodes
	longest   time.Duration // one attempt at most; for so long an agent of an in-band run may be without contact
	radio     *radio.Profile
	sheet     *runsheet.Sheet
	watched   map[string]*watchedNode // by node, as far as rules of validity needed it
	// controlSeen is how many records of control traffic were looked at.
	controlSeen int64
}

// sheetOf returns what the engine needs of a run's sheet, from memory where it
// was read before.
func (e *Engine) sheetOf(ctx context.Context, run, hash string) (*sheetInfo, error) {
	if s := e.sheets[run]; s != nil {
		return s, nil
	}
	b, err := e.cfg.Store.RunSheet(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("sheet of run %s: %w", run, err)
	}
	s, err := runsheet.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	info := &sheetInfo{encoded: b, hash: hash, inBand: s.Control == runsheet.ControlInBand, longest: s.Limits.Connect + s.Limits.Transfer, radio: &s.Radio, sheet: s, watched: map[string]*watchedNode{}}
	for _, st := range s.Topology.Stations {
		info.roles = append(info.roles, st.Role)
	}
	switch sig, err := e.cfg.Store.RunSignature(ctx, run); {
	case err == nil:
		info.signature = signature.Signature{KeyID: sig.KeyID, Bytes: sig.Signature}
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("signature of run %s: %w", run, err)
	}
	for _, role := range []radio.Role{radio.RoleServer, radio.RoleRelay, radio.RoleClient} {
		for _, l := range s.Listeners(role) {
			info.listeners = append(info.listeners, journal.ListenerName{Treatment: l.Treatment.Name, At: l.At()})
		}
	}
	e.sheets[run] = info
	return info, nil
}
