package evidence

import (
	"archive/zip"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/identity"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/internal/sshsig"
)

const (
	madeCampaign = "abcd2345"
	madeRun      = madeCampaign + "-1"
	labRun       = madeCampaign + "-2" // of a lab, whose nodes sign nothing
)

var madeAt = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// authorityMade is an authority that certifies nodes.
type authorityMade struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority(t testing.TB) authorityMade {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: madeAt.AddDate(-1, 0, 0), NotAfter: madeAt.AddDate(9, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authorityMade{cert, key}
}

// certify makes a node's certificate in PEM.
func (a authorityMade) certify(t testing.TB, node string, key crypto.Signer, from, until time.Time) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: from, NotAfter: until, URIs: []*url.URL{identity.NodeURI(node)}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// nodeMade is a node and its key.
type nodeMade struct {
	name string
	role radio.Role
	key  crypto.Signer
}

// made is a bag for tests: files, and the keys of those who sign. It is changed, and then
// sealed as the orchestrator does; or changed afterwards, as an attacker does.
type made struct {
	t     testing.TB
	files map[string][]byte
	index Evidence
	key   ed25519.PrivateKey // of the orchestrator
	ca    authorityMade
	nodes []nodeMade
	// unsigned leaves the bag's signature out.
	unsigned bool
}

func newMade(t testing.TB) *made {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	m := &made{t: t, files: map[string][]byte{}, key: key, ca: newAuthority(t)}
	for _, n := range []nodeMade{{name: "alpha", role: radio.RoleClient}, {name: "bravo", role: radio.RoleServer}} {
		n.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		m.nodes = append(m.nodes, n)
	}
	m.index = Evidence{
		Format: Format, Campaign: madeCampaign, Plan: "quick-start", Packed: madeAt, Version: "v1", Schema: "47", Complete: true,
		Tables: []string{"runs"}, Exports: []Export{{File: "results.json", Format: "json"}},
	}
	m.files[Plan] = []byte("name: quick-start\n")
	m.files[Rows+"/runs.jsonl"] = []byte("{}\n")
	m.files[Results+"/results.json"] = []byte("{\"results\": []}\n")
	m.files[Drivers+"/haul/driver.yaml"] = []byte("protocol: haul\n")
	m.files[Crate] = []byte("{}\n")
	m.files[SigningKeys] = signature.FormatKeys("keys", signature.PublicOf(key))
	m.files[Authority] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.ca.cert.Raw})
	m.files[ReadMe] = []byte("How to check the bag\n")
	m.files[Declaration] = []byte(declaration)
	m.addRun(madeRun, true)
	m.addRun(labRun, false)
	return m
}

// addRun adds a run of all nodes.
func (m *made) addRun(run string, signed bool) {
	sheet := []byte(`{"format": 1, "plan": "quick-start", "of": "` + run + `"}`)
	r := Run{ID: run, State: "completed", SheetHash: runsheet.Hash(sheet), SheetKey: signature.PublicOf(m.key).ID()}
	m.files[SheetFile(run)] = sheet
	m.sign(run, m.key)
	for _, n := range m.nodes {
		x := Node{Name: n.name, Role: string(n.role), Ended: "completed"}
		if !signed {
			x.Unsigned = "the node has no certificate"
		}
		m.files[JournalFile(run, n.name)] = m.journal(&r, n, 20)
		x.Records = 22
		if r.Nodes = append(r.Nodes, x); signed {
			m.state(&r, n, nil)
			m.files[CertificateFile(run, n.name)] = m.ca.certify(m.t, n.name, n.key, madeAt.AddDate(0, -1, 0), madeAt.AddDate(0, 1, 0))
		}
	}
	m.index.Runs = append(m.index.Runs, r)
}

// sign signs a run's sheet.
func (m *made) sign(run string, key ed25519.PrivateKey) {
	s := signature.SignSheet(key, run, m.files[SheetFile(run)])
	m.files[SheetSignatureFile(run)] = m.json(SheetSignature{s.KeyID, s.Bytes})
}

func (m *made) json(v any) []byte {
	m.t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	require.NoError(m.t, err)
	return append(b, '\n')
}

// record is one record of a journal.
func (m *made) record(run string, n nodeMade, seq int64, kind journal.Type, body any) []byte {
	m.t.Helper()
	b, err := json.Marshal(body)
	require.NoError(m.t, err)
	b, err = json.Marshal(journal.Record{Seq: seq, Run: run, Node: n.name, Role: n.role, At: madeAt.Add(time.Duration(seq) * time.Second), Type: kind, Body: b})
	require.NoError(m.t, err)
	return b
}

// journal is a journal of so many samples between its start and its end.
func (m *made) journal(r *Run, n nodeMade, samples int64) []byte {
	out := journal.AppendLine(nil, m.record(r.ID, n, 1, journal.TypeRunStarted, journal.RunStarted{SheetHash: r.SheetHash, Version: "v1"}))
	for i := range samples {
		out = journal.AppendLine(out, m.record(r.ID, n, 2+i, journal.TypeSamples, journal.Samples{Trial: int(i)}))
	}
	return journal.AppendLine(out, m.record(r.ID, n, 2+samples, journal.TypeRunEnded, journal.RunEnded{End: journal.RunCompleted}))
}

// state has a node sign its journal, changed before by change where that is not nil.
func (m *made) state(r *Run, n nodeMade, change func(*journal.Statement)) {
	m.t.Helper()
	d := journal.NewDigests()
	for l := range bytes.Lines(m.files[JournalFile(r.ID, n.name)]) {
		d.Add(l[9 : len(l)-1])
	}
	s := &journal.Statement{Kind: journal.StatementKind, Run: r.ID, Node: n.name, Role: n.role, SheetHash: r.SheetHash, SignedAt: madeAt}
	d.Set(s)
	if change != nil {
		change(s)
	}
	text, err := s.Encode()
	require.NoError(m.t, err)
	m.files[StatementFile(r.ID, n.name)] = text
	m.signStatement(r.ID, n.name, n.key)
}

func (m *made) signStatement(run, node string, key crypto.Signer) {
	m.t.Helper()
	text, err := sshsig.Sign(key, sshsig.Journal, m.files[StatementFile(run, node)])
	require.NoError(m.t, err)
	m.files[StatementSignatureFile(run, node)] = []byte(text)
}

// deleteSamples takes some records out of a journal, as a rule does that deletes old samples.
func (m *made) deleteSamples(run *Run, node int) {
	file := JournalFile(run.ID, run.Nodes[node].Name)
	var kept, sums []byte
	for l := range bytes.Lines(m.files[file]) {
		sum := sha256.Sum256(l[9 : len(l)-1])
		sums = append(hex.AppendEncode(sums, sum[:]), '\n')
		if !bytes.Contains(l, []byte(`"samples"`)) {
			kept = append(kept, l...)
		}
	}
	m.files[file], m.files[RecordDigests(run.ID, run.Nodes[node].Name)] = kept, sums
	run.Nodes[node].Records, run.Nodes[node].SamplesDeleted = 2, true
}

// seal writes index, manifests and signature.
func (m *made) seal() {
	m.t.Helper()
	if m.files[Index] == nil {
		m.files[Index] = m.json(m.index)
	}
	if m.files[Signers] == nil {
		m.files[Signers] = []byte(m.signers())
	}
	var bytes, n int
	for name, b := range m.files {
		if strings.HasPrefix(name, Payload+"/") {
			bytes, n = bytes+len(b), n+1
		}
	}
	if m.files[Info] == nil {
		m.files[Info] = fmt.Appendf(nil, "Bagging-Date: 2026-05-01\nPayload-Oxum: %d.%d\n", bytes, n)
	}
	m.files[Manifest] = m.manifest(true)
	m.files[TagManifest] = m.manifest(false)
	if !m.unsigned {
		m.signBag(m.key)
	}
}

func (m *made) signBag(key crypto.Signer) {
	m.t.Helper()
	text, err := sshsig.Sign(key, sshsig.Evidence, m.files[TagManifest])
	require.NoError(m.t, err)
	m.files[TagSignature] = []byte(text)
}

func (m *made) signers() string {
	m.t.Helper()
	key, err := ssh.NewPublicKey(m.key.Public())
	require.NoError(m.t, err)
	out := sshsig.AllowedSigner("orchestrator", sshsig.Evidence, key)
	for _, n := range m.nodes {
		key, err := ssh.NewPublicKey(n.key.Public())
		require.NoError(m.t, err)
		out += sshsig.AllowedSigner(n.name, sshsig.Journal, key)
	}
	return out
}

func (m *made) manifest(payload bool) (out []byte) {
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		if strings.HasPrefix(name, Payload+"/") == payload && name != TagManifest && name != TagSignature {
			out = fmt.Appendf(out, "%x  %s\n", sha256.Sum256(m.files[name]), name)
		}
	}
	return out
}

// zip is the bag as a file.
func (m *made) zip() []byte {
	m.t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: Folder(madeCampaign) + "/" + name, Method: zip.Deflate, Modified: madeAt})
		require.NoError(m.t, err)
		_, err = f.Write(m.files[name])
		require.NoError(m.t, err)
	}
	require.NoError(m.t, w.Close())
	return b.Bytes()
}

func openBytes(b []byte, limits Limits) (*Bag, error) {
	return openArchive("trial.zip", bytes.NewReader(b), int64(len(b)), limits)
}

// verdict opens and checks the bag as it is now.
func (m *made) verdict(known Known) *Verdict {
	m.t.Helper()
	bag, err := openBytes(m.zip(), DefaultLimits())
	require.NoError(m.t, err)
	last := 0.0
	v, err := Verify(m.t.Context(), bag, known, func(_ string, share float64) {
		require.True(m.t, share >= last && share <= 1, "progress goes from %v to %v", last, share)
		last = share
	})
	require.NoError(m.t, err)
	return v
}

func (m *made) knownKeys() Known {
	return Known{Keys: []signature.PublicKey{signature.PublicOf(m.key)}, From: "trusted-keys", Authorities: []*x509.Certificate{m.ca.cert}}
}

// findings are all findings of a verdict, as CODE FILE: MESSAGE.
func findings(v *Verdict) (out []string) {
	for _, c := range v.Checks {
		for _, f := range c.Findings {
			out = append(out, c.Code+" "+f.String())
		}
	}
	return out
}

// folder unpacks the bag's files.
func (m *made) folder() string {
	dir := filepath.Join(m.t.TempDir(), Folder(madeCampaign))
	for name, b := range m.files {
		writeFile(m.t, filepath.Join(dir, filepath.FromSlash(name)), b)
	}
	return dir
}
