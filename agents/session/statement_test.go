package session

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"linktrial/agents/identity"
	"linktrial/executor/journal"
	wire "linktrial/internal/identity"
	"linktrial/internal/sshsig"
)

// enrolled is the identity of node n1, and its key.
func enrolled(t *testing.T) (*identity.Identity, ssh.PublicKey) {
	t.Helper()
	newKey := func() (*ecdsa.PrivateKey, []byte) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		return key, der
	}
	ca, _ := newKey()
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, ca.Public(), ca)
	require.NoError(t, err)
	key, der := newKey()
	cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: authority.NotAfter, URIs: []*url.URL{wire.NodeURI("n1")}}, authority, key.Public(), ca)
	require.NoError(t, err)
	dir := t.TempDir()
	var b bytes.Buffer
	for _, block := range []*pem.Block{{Type: "PRIVATE KEY", Bytes: der}, {Type: "CERTIFICATE", Bytes: cert}, {Type: "CERTIFICATE", Bytes: root}} {
		require.NoError(t, pem.Encode(&b, block))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, identity.File), b.Bytes(), 0o600))
	id, err := identity.Load(dir, nil)
	require.NoError(t, err)
	public, err := ssh.NewPublicKey(key.Public())
	require.NoError(t, err)
	return id, public
}

// ended is a journal that has ended, with a record behind its end.
func ended(t *testing.T) *journal.File {
	t.Helper()
	j := newJournal(t)
	for i := range 30 {
		_, err := j.Append(journal.TypeTrialEnded, journal.TrialEnded{Trial: i})
		require.NoError(t, err)
	}
	_, err := j.Append(journal.TypeRunEnded, journal.RunEnded{End: journal.RunCompleted})
	require.NoError(t, err)
	_, err = j.Append(journal.TypeTrialEnded, journal.TrialEnded{})
	require.NoError(t, err)
	require.NoError(t, j.Sync())
	return j
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// signing is an orchestrator that takes statements as take says, and a session with it.
func signing(t *testing.T, log *bytes.Buffer, take func(call int) (bool, error)) (*orchestrator, *Session, ssh.PublicKey) {
	o := newOrchestrator(t)
	o.take = take
	id, key := enrolled(t)
	s, err := New(Config{URL: o.server.URL, Name: "n1", Incarnation: "i1", Identity: id, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return o, s, key
}

// When all of a journal is stored, the node signs it up to its end, until that is answered;
// an orchestrator that takes no statement is asked once.
func TestJournalIsSigned(t *testing.T) {
	for name, c := range map[string]struct {
		take  func(call int) (bool, error)
		calls int
		log   string
	}{
		"taken": {func(int) (bool, error) { return true, nil }, 1, ""},
		"the answer is lost": {func(call int) (bool, error) {
			if call < 3 {
				return false, connect.NewError(connect.CodeUnavailable, errors.New("lost"))
			}
			return true, nil
		}, 3, "could not be delivered"},
		"an earlier version, or refused": {func(int) (bool, error) { return false, nil }, 1, "did not take the node's statement"},
		"the run is not known": {func(int) (bool, error) {
			return false, connect.NewError(connect.CodeNotFound, errors.New("no such run"))
		}, 1, "no such run"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &bytes.Buffer{}
			o, s, key := signing(t, log, c.take)
			j := ended(t)
			d := s.NewDelivery("r1", j, false)
			d.Sign("hash of the sheet")
			require.True(t, d.Run(t.Context(), closed()))
			require.Len(t, o.records("r1"), 32)
			require.Len(t, o.statements, c.calls)
			require.Contains(t, log.String(), c.log)
			for _, m := range o.statements {
				by, err := sshsig.Verify(sshsig.Journal, m.Statement, m.StatementSignature)
				require.NoError(t, err)
				require.Equal(t, key.Marshal(), by.Marshal())
				says, err := journal.DecodeStatement(m.Statement)
				require.NoError(t, err)
				want := journal.Statement{Kind: journal.StatementKind, Run: "r1", Node: "n1", Role: "client", SheetHash: "hash of the sheet", SignedAt: says.SignedAt}
				digests := journal.NewDigests()
				for _, r := range o.records("r1")[:31] {
					digests.Add([]byte(r))
				}
				digests.Set(&want)
				require.Equal(t, want, *says, "what was delivered, up to the end")
			}
		})
	}
}

// A node without a certificate signs nothing, and neither does one whose journal has no end.
func TestJournalIsNotSigned(t *testing.T) {
	o := newOrchestrator(t)
	d := newSession(t, o).NewDelivery("r1", ended(t), false)
	d.Sign("hash")
	require.True(t, d.Run(t.Context(), closed()))
	require.Empty(t, o.statements)

	o, s, _ := signing(t, &bytes.Buffer{}, nil)
	j := newJournal(t)
	_, err := j.Append(journal.TypeTrialEnded, journal.TrialEnded{})
	require.NoError(t, err)
	require.NoError(t, j.Sync())
	d = s.NewDelivery("r1", j, false)
	d.Sign("hash")
	require.True(t, d.Run(t.Context(), closed()))
	require.Empty(t, o.statements)
}

// An orchestrator that has lost records gets them again, and the statement after them.
func TestSignedAfterLostRecords(t *testing.T) {
	var o *orchestrator
	o, s, _ := signing(t, &bytes.Buffer{}, func(call int) (bool, error) {
		if call == 1 {
			o.stored["r1"] = o.stored["r1"][:7]
			return false, nil
		}
		return true, nil
	})
	d := s.NewDelivery("r1", ended(t), false)
	d.Sign("hash")
	require.True(t, d.Run(t.Context(), closed()))
	require.Len(t, o.records("r1"), 32)
	require.Len(t, o.statements, 2)
}

// While calls are held back no statement is sent, and the end of the run does not wait for it.
func TestNoStatementInSilence(t *testing.T) {
	o, s, _ := signing(t, &bytes.Buffer{}, func(int) (bool, error) { return true, nil })
	s.Gate().Suspend()
	d := s.NewDelivery("r1", ended(t), true)
	d.Sign("hash")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx, closed()) })
	s.Gate().Window(ctx, 50*time.Millisecond, 20*time.Second, d.CaughtUp)
	taken := func() int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.statements)
	}
	before := taken()
	time.Sleep(100 * time.Millisecond)
	require.Equal(t, before, taken(), "a statement in silence")
	s.Gate().Resume()
	eventually(t, "the statement", func() bool { return taken() > 0 })
	eventually(t, "all records", func() bool { return d.CaughtUp() })
	running.Wait()
	cancel()
}
