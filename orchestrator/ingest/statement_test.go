package ingest_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/sshsig"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// signer is a node's key with a certificate.
func signer(t *testing.T) (crypto.Signer, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return key, cert
}

// stated is what a node says of a journal, up to its end.
func stated(t *testing.T, j *storetest.Journal, sheet *runsheet.Sheet) *journal.Statement {
	t.Helper()
	encoded, err := sheet.Encode()
	require.NoError(t, err)
	s := &journal.Statement{Kind: journal.StatementKind, Run: j.Run, Node: string(j.Role), Role: j.Role, SheetHash: runsheet.Hash(encoded), SignedAt: time.Now().UTC()}
	d := journal.NewDigests()
	for _, r := range j.Records {
		d.Add(r)
	}
	d.Set(s)
	return s
}

func signedBy(t *testing.T, key crypto.Signer, cert *x509.Certificate, s *journal.Statement) *ingest.Signed {
	t.Helper()
	b, err := s.Encode()
	require.NoError(t, err)
	signature, err := sshsig.Sign(key, sshsig.Journal, b)
	require.NoError(t, err)
	return &ingest.Signed{Statement: b, Signature: signature, Certificate: cert}
}

// A statement that fits is stored as it came, once; what does not fit is refused with one
// sentence, which is kept and logged.
func TestStatements(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(3)
	run := storetest.AddRun(t, s, "stated", sheet)
	log := &bytes.Buffer{}
	told := 0
	in := ingest.New(ingest.Config{Store: s, Logger: slog.New(slog.NewTextHandler(log, nil)), Stored: func(ingest.Delta) { told++ }})
	j := storetest.Lead(run, sheet, 5)
	key, cert := signer(t)
	other, _ := signer(t)
	right := stated(t, j, sheet)
	take := func(x *ingest.Signed) (stored bool, kept *store.Signed) {
		t.Helper()
		stored, err := in.TakeStatement(t.Context(), run, "client", x)
		require.NoError(t, err)
		kept, err = s.Statement(t.Context(), run, "client")
		require.NoError(t, err)
		return stored, kept
	}
	_, err := in.Deliver(t.Context(), run, "client", batch(j, 1, len(j.Records)-1))
	require.NoError(t, err)
	stored, kept := take(signedBy(t, key, cert, right))
	require.False(t, stored)
	require.Equal(t, "the node's statement on its journal was refused: the journal has not ended here", kept.Unsigned)
	_, err = in.Deliver(t.Context(), run, "client", batch(j, len(j.Records), len(j.Records)))
	require.NoError(t, err)

	forged := *j
	forged.Records = append([][]byte(nil), j.Records...)
	forged.Records[4] = bytes.Replace(forged.Records[4], []byte(`"client"`), []byte(`"Client"`), 1)
	cut := *j
	cut.Records = j.Records[:3]
	change := func(f func(*journal.Statement)) *ingest.Signed {
		x := *right
		f(&x)
		return signedBy(t, key, cert, &x)
	}
	moved := signedBy(t, key, cert, right)
	moved.Statement = bytes.Replace(moved.Statement, []byte(`"role"`), []byte(`"role" `), 1)
	refusals := map[string]struct {
		x    *ingest.Signed
		want string
	}{
		"a record was changed":  {signedBy(t, key, cert, stated(t, &forged, sheet)), "a record was changed on the node or here"},
		"records are missing":   {signedBy(t, key, cert, stated(t, &cut, sheet)), "it says that the journal has 3 records, and"},
		"a foreign key":         {signedBy(t, other, cert, right), "and the node's certificate has the key SHA256:"},
		"another run":           {change(func(x *journal.Statement) { x.Run = "other-1" }), `it is of run "other-1"`},
		"another node":          {change(func(x *journal.Statement) { x.Node = "server" }), `it is of node "server"`},
		"another role":          {change(func(x *journal.Statement) { x.Role = radio.RoleServer }), "the node is its client"},
		"another sheet":         {change(func(x *journal.Statement) { x.SheetHash = "0" }), "it is of the run sheet"},
		"another length":        {change(func(x *journal.Statement) { x.Bytes++ }), "the stored records make"},
		"another file":          {change(func(x *journal.Statement) { x.SHA256 = strings.Repeat("0", 64) }), "the stored records make"},
		"changed after signing": {moved, "what is signed is something else"},
		"no signature":          {&ingest.Signed{Statement: moved.Statement, Certificate: cert}, "it is no SSH signature"},
	}
	for name, c := range refusals {
		before := told
		stored, kept := take(c.x)
		require.False(t, stored, name)
		require.Contains(t, kept.Unsigned, c.want, name)
		require.Contains(t, log.String(), "a node's statement on its journal is refused", name)
		require.Nil(t, kept.Statement, name)
		require.Greater(t, told, before, "who watches the run is told")
	}

	good := signedBy(t, key, cert, right)
	stored, kept = take(good)
	require.True(t, stored)
	first := &store.Signed{Statement: good.Statement, Signature: good.Signature, Certificate: cert.Raw}
	require.Equal(t, first, kept, "and no fault is left")

	// The answer was lost, and the node signs anew, with a new certificate: the first stays.
	key2, cert2 := signer(t)
	again := *right
	again.SignedAt = right.SignedAt.Add(time.Hour)
	stored, kept = take(signedBy(t, key2, cert2, &again))
	require.True(t, stored)
	require.Equal(t, first, kept)
	stored, kept = take(signedBy(t, key, cert, stated(t, &forged, sheet)))
	require.False(t, stored)
	require.Equal(t, first.Statement, kept.Statement)
	require.Contains(t, kept.Unsigned, "it is a second one that says something else")

	_, err = in.TakeStatement(t.Context(), run, "nobody", good)
	require.ErrorIs(t, err, ingest.ErrNotFound)
	_, err = s.Statement(t.Context(), run, "nobody")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Equal(t, 1, rows(t, url, "SELECT count(*) FROM run_nodes WHERE statement IS NOT NULL"))
}

// Late records are not part of what is signed, and where records are not kept as they were
// delivered, their digests decide.
func TestStatementsWithoutRecords(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(3)
	run := storetest.AddRun(t, s, "digests", sheet)
	in := ingest.New(ingest.Config{Store: s})
	j := storetest.Lead(run, sheet, 5)
	key, cert := signer(t)
	right := signedBy(t, key, cert, stated(t, j, sheet))
	j.Start(sheet, 0, 9)
	_, err := in.Deliver(t.Context(), run, "client", batch(j, 1, len(j.Records)))
	require.NoError(t, err)
	execute(t, url, "DELETE FROM journal_pages WHERE samples")
	forged := *j
	forged.Records = append([][]byte(nil), j.Records[:len(j.Records)-1]...)
	forged.Records[7] = append(forged.Records[7], ' ')
	stored, err := in.TakeStatement(t.Context(), run, "client", signedBy(t, key, cert, stated(t, &forged, sheet)))
	require.NoError(t, err)
	require.False(t, stored)
	execute(t, url, "UPDATE journal_pages SET content = 'x' WHERE first_seq = 1")
	stored, err = in.TakeStatement(t.Context(), run, "client", right)
	require.NoError(t, err)
	require.False(t, stored)
	kept, err := s.Statement(t.Context(), run, "client")
	require.NoError(t, err)
	require.Contains(t, kept.Unsigned, "it cannot be checked: what is stored is damaged")
	execute(t, url, "DELETE FROM journal_pages")
	stored, err = in.TakeStatement(t.Context(), run, "client", right)
	require.NoError(t, err)
	require.True(t, stored)
}
