package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/ssh"

	"linktrial/executor/journal"
	"linktrial/internal/sshsig"
	"linktrial/orchestrator/ingest/ingestdb"
	"linktrial/orchestrator/store"
)

// statedWithin bounds the check of one statement, which reads the whole journal.
const statedWithin = 2 * time.Minute

// Signed is a node's statement on its journal as it arrived, and the certificate of the
// connection that it arrived on.
type Signed struct {
	Statement   []byte // journal.Statement, as it was signed
	Signature   string // SSHSIG, namespace sshsig.Journal
	Certificate *x509.Certificate
}

// misfit is why a statement is refused, as the rest of a sentence.
type misfit string

func (m misfit) Error() string { return string(m) }

// TakeStatement checks a node's statement on its journal of a run, which has ended, and
// stores it. False without an error: it is refused, which is logged and kept with the run; a
// repetition would be refused again. A statement that says the same as the stored one is
// taken, and the stored one stays. The caller may go away: the check goes on.
func (in *Ingester) TakeStatement(ctx context.Context, run, node string, s *Signed) (stored bool, err error) {
	// One at a time: each reads a whole journal.
	select {
	case in.stating <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-in.stating }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statedWithin)
	defer cancel()
	err = in.takeStatement(ctx, run, node, s)
	why := misfit("")
	if !errors.As(err, &why) {
		return err == nil, err
	}
	in.cfg.Logger.Error("a node's statement on its journal is refused", "run", run, "node", node, "reason", string(why))
	err = in.db.RefuseStatement(ctx, ingestdb.RefuseStatementParams{RunID: run, Node: node, Reason: text("the node's statement on its journal was refused: " + string(why))})
	if err == nil {
		in.cfg.Stored(Delta{Run: run, Node: node, Structure: true})
	}
	return false, err
}

// takeStatement returns a [misfit] where the statement is refused.
func (in *Ingester) takeStatement(ctx context.Context, run, node string, s *Signed) error {
	part, err := in.db.StatedPart(ctx, ingestdb.StatedPartParams{RunID: run, Node: node})
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("run %q, node %q: %w", run, node, ErrNotFound)
	} else if err != nil {
		return err
	}
	says, err := s.read()
	if err != nil {
		return misfit(err.Error())
	}
	switch {
	case says.Run != run:
		return misfit(fmt.Sprintf("it is of run %.100q", says.Run))
	case says.Node != node:
		return misfit(fmt.Sprintf("it is of node %.100q", says.Node))
	case string(says.Role) != part.Role:
		return misfit(fmt.Sprintf("it is of the run's %.40q, and the node is its %s", says.Role, part.Role))
	case says.SheetHash != part.SheetHash:
		return misfit(fmt.Sprintf("it is of the run sheet %.64q, and the run's is %s", says.SheetHash, part.SheetHash))
	case !part.Ended:
		return misfit("the journal has not ended here")
	case part.Statement != nil:
		return sameStatement(part.Statement, says)
	}
	if err := in.holdAgainstStored(ctx, says); err != nil {
		return err
	}
	n, err := in.db.StoreStatement(ctx, ingestdb.StoreStatementParams{RunID: run, Node: node, Statement: s.Statement, Signature: s.Signature, Certificate: s.Certificate.Raw})
	if err == nil && n == 0 {
		return fmt.Errorf("another statement of %s on run %s was stored meanwhile", node, run)
	}
	return err
}

// read verifies the signature and decodes what is signed.
func (s *Signed) read() (*journal.Statement, error) {
	key, err := sshsig.Verify(sshsig.Journal, s.Statement, s.Signature)
	if err != nil {
		return nil, err
	}
	want, err := ssh.NewPublicKey(s.Certificate.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("the key of the node's certificate: %w", err)
	}
	if !bytes.Equal(key.Marshal(), want.Marshal()) {
		return nil, fmt.Errorf("it is signed with the key %s, and the node's certificate has the key %s", ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(want))
	}
	return journal.DecodeStatement(s.Statement)
}

// sameStatement compares a statement with the stored one. One that was made again, because
// the answer to the first was lost, has another time of signing.
func sameStatement(stored []byte, says *journal.Statement) error {
	first, err := journal.DecodeStatement(stored)
	if err != nil {
		return fmt.Errorf("the stored statement of %s on run %s: %w", says.Node, says.Run, err)
	}
	again := *says
	again.SignedAt = first.SignedAt
	if again != *first {
		return misfit(fmt.Sprintf("it is a second one that says something else: %d records with the SHA-256 %s, the first one says %d with %s", says.Records, says.RecordsSHA256, first.Records, first.RecordsSHA256))
	}
	return nil
}

// holdAgainstStored compares what a statement says of a journal with the records that are
// stored. Where some are not kept as they were delivered, their digests decide alone: the
// digest of the file follows from the records.
func (in *Ingester) holdAgainstStored(ctx context.Context, says *journal.Statement) error {
	file, digests := journal.NewDigests(), sha256.New()
	whole, records := true, int64(0)
	for r, err := range in.cfg.Store.JournalRecords(ctx, says.Run, says.Node) {
		if errors.Is(err, store.ErrDamaged) {
			return misfit("it cannot be checked: " + err.Error())
		} else if err != nil {
			return err
		}
		records++
		digests.Write(r.SHA256[:])
		if whole = whole && r.JSON != nil; whole {
			file.Add(r.JSON)
		}
	}
	if records != says.Records {
		return misfit(fmt.Sprintf("it says that the journal has %d records, and %d are stored", says.Records, records))
	}
	if sum := hex.EncodeToString(digests.Sum(nil)); sum != says.RecordsSHA256 {
		return misfit(fmt.Sprintf("it says that the SHA-256 of the records' digests is %s, and that of the stored records is %s: a record was changed on the node or here", says.RecordsSHA256, sum))
	}
	want := *says
	if file.Set(&want); whole && want != *says {
		return misfit(fmt.Sprintf("it says that the journal has %d bytes with the SHA-256 %s, and the stored records make %d with %s", says.Bytes, says.SHA256, want.Bytes, want.SHA256))
	}
	return nil
}
