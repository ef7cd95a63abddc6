package machines

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"linktrial/agents/agent"
	"linktrial/agents/identity"
	"linktrial/agents/session"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/sshsig"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// endedRun is a run that is over for everybody, and the journals of its nodes.
func endedRun(t *testing.T, o *orchestrator) (s *store.Store, run, sheetHash string, journals map[radio.Role]*storetest.Journal) {
	t.Helper()
	s, err := store.Open(t.Context(), o.cfg.DatabaseURL, nil)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	sheet := storetest.Sheet(6)
	encoded, err := sheet.Encode()
	require.NoError(t, err)
	run = storetest.AddRun(t, s, "signed", sheet)
	conn, err := pgx.Connect(t.Context(), o.cfg.DatabaseURL)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "UPDATE runs SET state = 'completed', ended_at = now()")
	require.NoError(t, err)
	relay := storetest.NewJournal(run, radio.RoleRelay)
	relay.Begin(sheet)
	relay.Finish(journal.RunCompleted, "")
	return s, run, runsheet.Hash(encoded), map[radio.Role]*storetest.Journal{radio.RoleClient: storetest.Lead(run, sheet, 20), radio.RoleServer: storetest.Serve(run, sheet), radio.RoleRelay: relay}
}

// writeJournal writes a journal as an agent does.
func writeJournal(t *testing.T, path string, j *storetest.Journal) {
	t.Helper()
	var b []byte
	for _, r := range j.Records {
		b = journal.AppendLine(b, r)
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, b, 0o644))
}

// deliver delivers a journal over a connection of the node's own, and signs it unless sheetHash
// is empty; between is called when all of it is stored.
func deliver(t *testing.T, o *orchestrator, id *identity.Identity, j *storetest.Journal, sheetHash string, between func(*session.Session)) {
	t.Helper()
	s, err := session.New(session.Config{URL: o.URL(), Name: string(j.Role), Version: "v-agent", Identity: id, Incarnation: "one"})
	require.NoError(t, err)
	defer s.Close()
	path := filepath.Join(t.TempDir(), "journal")
	writeJournal(t, path, j)
	f, err := journal.Open(path, journal.Identity{Run: j.Run, Node: string(j.Role), Role: j.Role}, journal.Options{ReserveBytes: -1})
	require.NoError(t, err)
	defer f.Close()
	ended := make(chan struct{})
	close(ended)
	if between != nil {
		require.True(t, s.NewDelivery(j.Run, f, false).Run(t.Context(), ended))
		between(s)
	}
	d := s.NewDelivery(j.Run, f, false)
	d.Sign(sheetHash)
	require.True(t, d.Run(t.Context(), ended))
}

// verifies checks a node's statement with OpenSSH's own program.
func verifies(t *testing.T, s *store.Store, j *storetest.Journal) {
	t.Helper()
	signed, err := s.Statement(t.Context(), j.Run, string(j.Role))
	require.NoError(t, err)
	require.Empty(t, signed.Unsigned)
	require.NotNil(t, signed.Statement)
	says, err := journal.DecodeStatement(signed.Statement)
	require.NoError(t, err)
	require.EqualValues(t, len(j.Records), says.Records)
	cert, err := x509.ParseCertificate(signed.Certificate)
	require.NoError(t, err)
	key, err := ssh.NewPublicKey(cert.PublicKey)
	require.NoError(t, err)
	dir := t.TempDir()
	allowed, sig := filepath.Join(dir, "allowed_signers"), filepath.Join(dir, "sig")
	require.NoError(t, os.WriteFile(allowed, []byte(sshsig.AllowedSigner(string(j.Role), sshsig.Journal, key)), 0o600))
	require.NoError(t, os.WriteFile(sig, []byte(signed.Signature), 0o600))
	cmd := exec.Command("ssh-keygen", "-Y", "verify", "-f", allowed, "-I", string(j.Role), "-n", sshsig.Journal, "-s", sig)
	cmd.Stdin = bytes.NewReader(signed.Statement)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// A run over real TLS ends with statements of all nodes: of one that goes on at once, of one
// whose certificate is renewed between, and of one whose agent was killed between the end of
// the run and the signature.
func TestNodesSignTheirJournals(t *testing.T) {
	o := serve(t, nil)
	s, run, sheetHash, journals := endedRun(t, o)

	cfg := agentConfig(t, o)
	n := &node{cfg.StateDir, newClock()}
	e := n.enrolment(o.URL(), o.token(t, "client"))
	e.Trust = func(keys []*linktrialv1.SigningKey) error { return agent.KeepSigningKeys(cfg.StateDir, keys) }
	id, err := identity.Enrol(t.Context(), e)
	require.NoError(t, err)
	deliver(t, o, id, journals[radio.RoleClient], "", nil) // until it was killed
	path := agent.JournalPath(cfg.StateDir, run)
	writeJournal(t, path, journals[radio.RoleClient])
	note := func() (x struct{ Stored time.Time }) {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(path), "assignment.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &x))
		return x
	}
	b, err := json.Marshal(map[string]any{"run": run, "sheet_hash": sheetHash, "wish": "finish", "taken": time.Now(), "begun": true})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "assignment.json"), b, 0o644))
	none, err := s.Statement(t.Context(), run, "client")
	require.NoError(t, err)
	require.Equal(t, &store.Signed{}, none)
	end := work(t, cfg)
	eventually(t, "the agent has nothing left of the run to do", func() bool { return !note().Stored.IsZero() })
	require.NoError(t, end())

	_, id = enrolled(t, o, "server")
	deliver(t, o, id, journals[radio.RoleServer], sheetHash, nil)

	_, id = enrolled(t, o, "relay")
	former := id.Expires()
	deliver(t, o, id, journals[radio.RoleRelay], sheetHash, func(s *session.Session) {
		o.clock.move(21 * day)
		require.NoError(t, s.Renew(t.Context()))
	})
	require.True(t, id.Expires().After(former))

	for _, j := range journals {
		verifies(t, s, j)
	}
	first, err := s.Statement(t.Context(), run, "relay")
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(first.Certificate)
	require.NoError(t, err)
	require.True(t, cert.NotAfter.After(former), "signed with the key of the connection, which is the new one")

	// The node asks again, with another time of signing: what is stored stays.
	deliver(t, o, id, journals[radio.RoleRelay], sheetHash, nil)
	again, err := s.Statement(t.Context(), run, "relay")
	require.NoError(t, err)
	require.Equal(t, first, again)
}

// A node that signs something else than it delivered is refused, and who watches the run is told.
func TestStatementThatDoesNotFit(t *testing.T) {
	log := &logged{}
	o := serve(t, func(c *server.Config) { c.Logger = log.logger() })
	s, run, _, journals := endedRun(t, o)
	_, id := enrolled(t, o, "server")
	deliver(t, o, id, journals[radio.RoleServer], "another sheet", nil)
	signed, err := s.Statement(t.Context(), run, "server")
	require.NoError(t, err)
	require.Nil(t, signed.Statement)
	require.Contains(t, signed.Unsigned, `the node's statement on its journal was refused: it is of the run sheet "another sheet"`)
	require.Contains(t, log.String(), "a node's statement on its journal is refused")
}
