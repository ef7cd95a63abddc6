package signing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/unit"
	"linktrial/orchestrator/store/dbsqlc"
)

// Changes of trust that can take a second person's approval.
const (
	RotateKey     = "rotate-signing-key"
	ApproveDriver = "approve-driver"
)

// States of a [Change].
const (
	Pending   = "pending"
	Confirmed = "confirmed"
	Refused   = "refused"
	Expired   = "expired"
)

// How long a request may be confirmed, and how many may be pending.
const (
	LeastApproval = 5 * time.Minute
	MostApproval  = 7 * 24 * time.Hour
	maxPending    = 50
	shownRequests = 100
)

// Reasons why a change request is not made, confirmed or refused as asked.
var (
	ErrNotAllowed = errors.New("not allowed")
	ErrNotNow     = errors.New("not now")
	ErrNotFound   = errors.New("not found")
)

// Change is a change of trust that one person requested, and that takes another.
type Change struct {
	dbsqlc.ChangeRequest
	State string
}

// content is what the hash of a request is over. Numbers are big-endian; a text is its
// length in bytes as 4 bytes, and its bytes. The time of the request makes two requests of
// the same change different.
func content(r dbsqlc.ChangeRequest) []byte {
	b := []byte("linktrial change request v1\x00")
	for _, s := range []string{r.Action, r.Protocol, r.Digest, r.Reason, r.KeyID, r.RequestedBy} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(r.RequestedAt.UnixMicro()))
	return binary.BigEndian.AppendUint64(b, uint64(r.ExpiresAt.UnixMicro()))
}

func (t *Trust) change(r dbsqlc.ChangeRequest) Change {
	c := Change{r, Pending}
	switch {
	case r.Confirmed != nil && *r.Confirmed:
		c.State = Confirmed
	case r.Confirmed != nil:
		c.State = Refused
	case !t.cfg.Now().Before(r.ExpiresAt):
		c.State = Expired
	}
	return c
}

// SecondApproval is how long a change may wait for a second person; zero: changes take none.
func (t *Trust) SecondApproval() time.Duration { return t.cfg.SecondApproval }

// Changes returns what was requested: what is pending first, then the newest.
func (t *Trust) Changes(ctx context.Context) ([]Change, error) {
	rows, err := t.cfg.Store.ChangeRequests(ctx, dbsqlc.ChangeRequestsParams{Now: t.cfg.Now(), Most: shownRequests})
	if err != nil {
		return nil, fmt.Errorf("change requests: %w", err)
	}
	out := make([]Change, len(rows))
	for i, r := range rows {
		out[i] = t.change(r)
	}
	return out, nil
}

// RequestRotation requests the rotation of the key that signs now.
func (t *Trust) RequestRotation(ctx context.Context, by string) (*Change, error) {
	return t.request(ctx, dbsqlc.ChangeRequest{Action: RotateKey, KeyID: t.signingKey(), RequestedBy: by})
}

// RequestApproval requests the approval of a driver. It returns nothing where the driver is
// approved already.
func (t *Trust) RequestApproval(ctx context.Context, protocol, digest, reason, by string) (*Change, error) {
	if err := t.known(protocol, digest); err != nil {
		return nil, err
	}
	if err := oneLine(reason, by); err != nil {
		return nil, err
	}
	if is, err := t.isApproved(ctx, protocol, digest); err != nil || is {
		return nil, err
	}
	return t.request(ctx, dbsqlc.ChangeRequest{Action: ApproveDriver, Protocol: protocol, Digest: digest, Reason: reason, RequestedBy: by})
}

// signingKey is the identity of the key that signs now.
func (t *Trust) signingKey() string {
	keys := t.Keys()
	return keys[len(keys)-1].Key.ID()
}

// request keeps a request. Asking for the same again makes no other one.
func (t *Trust) request(ctx context.Context, r dbsqlc.ChangeRequest) (*Change, error) {
	pending, err := t.Changes(ctx)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, p := range pending {
		if p.State != Pending {
			continue
		}
		n++
		if p.Action == r.Action && p.Protocol == r.Protocol && p.Digest == r.Digest && p.KeyID == r.KeyID {
			if p.RequestedBy == r.RequestedBy && p.Reason == r.Reason {
				return &p, nil
			}
			return nil, fmt.Errorf("%w: %s requested this already; another admin can confirm request %s until %s", ErrNotNow, p.RequestedBy, p.ID, unit.Moment(p.ExpiresAt))
		}
	}
	if n >= maxPending {
		return nil, fmt.Errorf("%w: %d change requests are pending, which is the most: confirm or refuse some first", ErrNotNow, n)
	}
	r.RequestedAt = t.cfg.Now().UTC().Truncate(time.Microsecond) // as the database has it
	r.ExpiresAt = r.RequestedAt.Add(t.cfg.SecondApproval)
	hash := sha256.Sum256(content(r))
	r.Hash, r.ID = hash[:], hex.EncodeToString(hash[:8])
	if err := t.cfg.Store.InsertChangeRequest(ctx, dbsqlc.InsertChangeRequestParams{ID: r.ID, Hash: r.Hash, Action: r.Action, Protocol: r.Protocol, Digest: r.Digest,
		Reason: r.Reason, KeyID: r.KeyID, RequestedBy: r.RequestedBy, RequestedAt: r.RequestedAt, ExpiresAt: r.ExpiresAt}); err != nil {
		return nil, fmt.Errorf("keep a change request: %w", err)
	}
	t.cfg.Logger.Info("a change waits for a second admin", "request", r.ID, "action", r.Action, "by", r.RequestedBy)
	c := t.change(r)
	return &c, nil
}

// open returns a request that can be decided, locked.
func (t *Trust) open(ctx context.Context, q *dbsqlc.Queries, id string) (dbsqlc.ChangeRequest, error) {
	r, err := q.ChangeRequestForUpdate(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, fmt.Errorf("%w: there is no change request %.40q; 'linktrial request list' names them", ErrNotFound, id)
	}
	if err != nil {
		return r, fmt.Errorf("look up a change request: %w", err)
	}
	switch c := t.change(r); c.State {
	case Confirmed, Refused:
		return r, fmt.Errorf("%w: request %s was %s by %s at %s", ErrNotNow, r.ID, c.State, *r.DecidedBy, unit.Moment(*r.DecidedAt))
	case Expired:
		return r, fmt.Errorf("%w: request %s expired at %s: %s can request it again", ErrNotNow, r.ID, unit.Moment(r.ExpiresAt), r.RequestedBy)
	}
	return r, nil
}

// Confirm makes a requested change. The hash is that of the request as it was shown to who
// confirms it.
func (t *Trust) Confirm(ctx context.Context, id string, hash []byte, by string) (*Change, error) {
	var done dbsqlc.ChangeRequest
	err := t.cfg.Store.InTx(ctx, func(q *dbsqlc.Queries) error {
		r, err := t.open(ctx, q, id)
		if err != nil {
			return err
		}
		if err := t.mayConfirm(ctx, q, r, hash, by); err != nil {
			return err
		}
		at, yes := t.cfg.Now(), true
		r.DecidedBy, r.DecidedAt, r.Confirmed = &by, &at, &yes
		if err := q.DecideChangeRequest(ctx, dbsqlc.DecideChangeRequestParams{ID: r.ID, DecidedBy: r.DecidedBy, DecidedAt: r.DecidedAt, Confirmed: r.Confirmed}); err != nil {
			return fmt.Errorf("keep that a change is confirmed: %w", err)
		}
		done = r
		if r.Action == ApproveDriver {
			return q.InsertApproval(ctx, dbsqlc.InsertApprovalParams{Protocol: r.Protocol, Digest: r.Digest, Approved: true, Reason: r.Reason, GivenBy: r.RequestedBy + ", confirmed by " + by})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The key is in a file. Where that cannot be written, nothing is rotated, and the error
	// says so; the rotation is then requested again.
	if done.Action == RotateKey {
		if _, err := t.Rotate(); err != nil {
			return nil, err
		}
	}
	t.cfg.Logger.Info("a change was confirmed", "request", done.ID, "action", done.Action, "requested_by", done.RequestedBy, "by", by)
	c := t.change(done)
	return &c, nil
}

// mayConfirm returns why somebody may not confirm a request.
func (t *Trust) mayConfirm(ctx context.Context, q *dbsqlc.Queries, r dbsqlc.ChangeRequest, hash []byte, by string) error {
	if now := sha256.Sum256(content(r)); !bytes.Equal(r.Hash, now[:]) || !bytes.Equal(hash, now[:]) {
		return fmt.Errorf("%w: request %s is not what was confirmed: its hash is %x", ErrRefused, r.ID, now)
	}
	if by == "" || by == r.RequestedBy {
		return fmt.Errorf("%w: %s requested it, and another admin has to confirm it", ErrNotAllowed, r.RequestedBy)
	}
	who, err := q.User(ctx, r.RequestedBy)
	if err != nil {
		return fmt.Errorf("look up who requested a change: %w", err)
	}
	if who.Disabled || who.Role != "admin" {
		return fmt.Errorf("%w: %s, who requested it, is no admin any more: refuse the request", ErrNotNow, r.RequestedBy)
	}
	if r.Action == RotateKey && r.KeyID != t.signingKey() {
		return fmt.Errorf("%w: key %s, which was to be replaced, does not sign any more: refuse the request", ErrNotNow, r.KeyID)
	}
	return nil
}

// Refuse ends a request without the change. Who requested it withdraws it so.
func (t *Trust) Refuse(ctx context.Context, id, by string) (*Change, error) {
	var done dbsqlc.ChangeRequest
	err := t.cfg.Store.InTx(ctx, func(q *dbsqlc.Queries) error {
		r, err := t.open(ctx, q, id)
		if err != nil {
			return err
		}
		at, no := t.cfg.Now(), false
		r.DecidedBy, r.DecidedAt, r.Confirmed = &by, &at, &no
		done = r
		return q.DecideChangeRequest(ctx, dbsqlc.DecideChangeRequestParams{ID: r.ID, DecidedBy: r.DecidedBy, DecidedAt: r.DecidedAt, Confirmed: r.Confirmed})
	})
	if err != nil {
		return nil, err
	}
	t.cfg.Logger.Info("a change was refused", "request", done.ID, "action", done.Action, "requested_by", done.RequestedBy, "by", by)
	c := t.change(done)
	return &c, nil
}
