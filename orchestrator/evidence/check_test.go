package evidence

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/signature"
)

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, b, 0o644))
}

// A bag as it was packed has no finding, whoever knows its keys.
func TestGoodBag(t *testing.T) {
	m := newMade(t)
	m.seal()
	v := m.verdict(m.knownKeys())
	require.Empty(t, findings(v))
	require.Equal(t, 0, v.Findings())
	states := map[string]State{}
	for _, c := range v.Checks {
		states[c.Code] = c.State
	}
	require.Equal(t, map[string]State{CheckBag: Passed, CheckDigests: Passed, CheckSignature: Passed, CheckSheets: Passed, CheckJournals: Passed, CheckStatements: Partly, CheckContents: Passed}, states)
	require.Contains(t, v.Check(CheckStatements).Why[0], "2 journals of run abcd2345-2 (nodes alpha, bravo) are not signed: the node has no certificate")
	require.Equal(t, 88, v.Check(CheckJournals).Objects)
	require.Len(t, v.Signed, 5) // the bag, two sheets, two journals
	for _, s := range v.Signed {
		require.True(t, s.Known, s.What)
	}
	require.Equal(t, signature.PublicOf(m.key).ID(), v.SignedBy().Key)
	require.Contains(t, v.Means[0], "by a key that is trusted")

	stranger := m.verdict(Known{})
	require.Empty(t, findings(stranger))
	require.Equal(t, Partly, stranger.Check(CheckSignature).State)
	require.Contains(t, stranger.Check(CheckSignature).Why[0], signature.PublicOf(m.key).Fingerprint())
	require.Contains(t, strings.Join(stranger.Means, " "), "nobody has compared")
	require.Contains(t, strings.Join(stranger.Means, " "), "which this machine does not know")
	require.False(t, stranger.SignedBy().Known)
}

// A bag that was unpacked is checked as well, under whatever name.
func TestFolder(t *testing.T) {
	m := newMade(t)
	m.seal()
	dir := m.folder()
	bag, err := Open(dir, DefaultLimits())
	require.NoError(t, err)
	v, err := Verify(t.Context(), bag, m.knownKeys(), nil)
	require.NoError(t, err)
	require.Empty(t, findings(v))
	require.NoError(t, bag.Close())

	outside := filepath.Join(t.TempDir(), "outside")
	writeFile(t, outside, m.files[Plan])
	plan := filepath.Join(dir, filepath.FromSlash(Plan))
	require.NoError(t, os.Remove(plan))
	require.NoError(t, os.Symlink(outside, plan))
	_, err = Open(dir, DefaultLimits())
	require.EqualError(t, err, "linktrial-abcd2345: data/plan.yaml: it is a link or a device, expected a file")

	require.NoError(t, os.Remove(plan))
	_, err = Open(dir, Limits{Files: 3, File: 1 << 20, Total: 1 << 20, Ratio: 10})
	require.EqualError(t, err, "linktrial-abcd2345: it has more than 3 files")
	_, err = Open(outside, DefaultLimits())
	require.ErrorContains(t, err, "outside: it is no whole ZIP")
	_, err = Open(filepath.Join(dir, "none"), DefaultLimits())
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A key that a known one has endorsed is known, too.
func TestEndorsedKey(t *testing.T) {
	m := newMade(t)
	_, old, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	m.files[SigningKeys] = signature.FormatKeys("keys", signature.PublicOf(old), signature.PublicOf(m.key))
	m.files[EndorsedKeys] = signature.FormatEndorsed([]signature.Endorsed{signature.Endorse(old, signature.PublicOf(m.key))})
	m.seal()
	v := m.verdict(Known{Keys: []signature.PublicKey{signature.PublicOf(old)}, From: "trusted-keys"})
	require.Empty(t, findings(v))
	require.True(t, v.SignedBy().Known)
}

// Deleted samples are said, and the statement holds for the digests of the records.
func TestDeletedSamples(t *testing.T) {
	m := newMade(t)
	m.deleteSamples(&m.index.Runs[0], 0)
	m.seal()
	v := m.verdict(m.knownKeys())
	require.Empty(t, findings(v))
	require.Contains(t, v.Check(CheckJournals).Why[0], "some records are not in the bag")
	require.Len(t, v.Signed, 5)

	file := RecordDigests(madeRun, "alpha")
	m.files[file] = m.files[file][65:]
	m.seal()
	requireFinding(t, m.verdict(m.knownKeys()), CheckJournals, JournalFile(madeRun, "alpha"), "line 1: record 1 was changed")
}

// A journal that an earlier version stored is not in the bag, which is said, and no finding.
func TestNotKept(t *testing.T) {
	m := newMade(t)
	n := &m.index.Runs[1].Nodes[0]
	file := JournalFile(labRun, n.Name)
	m.deleteSamples(&m.index.Runs[1], 0)
	delete(m.files, file)
	n.NotKept, n.Records, n.SamplesDeleted = n.Records, 0, false
	m.seal()
	v := m.verdict(m.knownKeys())
	require.Empty(t, findings(v))
	require.Equal(t, []string{"the journal of node alpha of run abcd2345-2: the records are not in the bag: records.sha256 has their digests alone"}, v.Check(CheckJournals).Why)
	require.Equal(t, Partly, v.Check(CheckJournals).State)
}

// With one byte changed in any file, the bag is refused or has a finding that names the file.
func TestChangedByte(t *testing.T) {
	m := newMade(t)
	m.deleteSamples(&m.index.Runs[1], 0)
	m.seal()
	for name, content := range m.files {
		changed := bytes.Clone(content)
		changed[len(changed)/2] ^= 1
		m.files[name] = changed
		bag, err := openBytes(m.zip(), DefaultLimits())
		if err == nil {
			var v *Verdict
			v, err = Verify(t.Context(), bag, Known{}, nil)
			require.NoError(t, err)
			require.NotZero(t, v.Findings(), name)
			require.Contains(t, strings.Join(findings(v), "\n"), name)
		} else {
			require.True(t, strings.HasPrefix(err.Error(), "trial.zip: "+name+": "), "%s: %s", name, err)
		}
		m.files[name] = content
	}
	require.Empty(t, findings(m.verdict(Known{})))
}

func requireFinding(t *testing.T, v *Verdict, code, file, message string) {
	t.Helper()
	for _, f := range v.Check(code).Findings {
		if f.File == file && strings.Contains(f.Message, message) {
			require.Equal(t, Failed, v.Check(code).State)
			return
		}
	}
	t.Errorf("check %s has no finding %q of %s; there are:\n%s", code, message, file, strings.Join(findings(v), "\n"))
}

// What was changed before the bag was packed again and signed, or after, is found.
func TestFindings(t *testing.T) {
	alpha := func(f func(run, node string) string) string { return f(madeRun, "alpha") }
	_, foreign, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	foreignID := signature.PublicOf(foreign).ID()
	other := newAuthority(t)
	otherKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	certify := func(m *made, a authorityMade, node string, from, until int) []byte {
		return a.certify(t, node, m.nodes[0].key, madeAt.AddDate(0, 0, from), madeAt.AddDate(0, 0, until))
	}
	state := func(change func(*journal.Statement)) func(*made) {
		return func(m *made) { m.state(&m.index.Runs[0], m.nodes[0], change) }
	}
	for name, c := range map[string]struct {
		before, after       func(*made) // the bag is packed and signed
		stranger            bool        // this machine knows no key
		code, file, message string
	}{
		"missing journal": {after: func(m *made) { delete(m.files, alpha(JournalFile)) }, code: CheckBag, file: alpha(JournalFile), message: "manifest-sha256.txt has it, and the bag does not"},
		"missing journal, packed so": {before: func(m *made) { delete(m.files, alpha(JournalFile)) }, code: CheckContents, file: alpha(JournalFile),
			message: "the bag does not have it: the index has 22 records of it"},
		"additional file":            {after: func(m *made) { m.files["data/more.txt"] = []byte("x") }, code: CheckBag, file: "data/more.txt", message: "the bag has it, and manifest-sha256.txt does not"},
		"additional file, packed so": {before: func(m *made) { m.files["data/more.txt"] = []byte("x") }, code: CheckContents, file: "data/more.txt", message: "the index does not name it"},
		"additional tag file":        {after: func(m *made) { m.files["fetch.txt"] = []byte("x") }, code: CheckBag, file: "fetch.txt", message: "tagmanifest-sha256.txt does not"},
		"another version of BagIt":   {before: func(m *made) { m.files[Declaration] = []byte("BagIt-Version: 0.97\n") }, code: CheckBag, file: Declaration, message: "expected"},
		"wrong sum of the payload":   {before: func(m *made) { m.files[Info] = []byte("Payload-Oxum: 1.1\n") }, code: CheckBag, file: Info, message: `Payload-Oxum is "1.1"`},
		"no sum of the payload":      {before: func(m *made) { m.files[Info] = []byte("x: y\n") }, code: CheckBag, file: Info, message: "no Payload-Oxum"},

		"foreign signature": {after: func(m *made) { m.signBag(foreign) }, code: CheckSignature, file: TagSignature, message: "it is a foreign signature: by key " + foreignID + ", which is none of those in data/trust/signing-keys"},
		"packed and signed by another": {before: func(m *made) { m.files[SigningKeys] = signature.FormatKeys("", signature.PublicOf(foreign)) }, after: func(m *made) { m.signBag(foreign) },
			code: CheckSignature, file: TagSignature, message: "it is a foreign signature: by key " + foreignID + ", which is none of those in trusted-keys"},
		"signature of something else": {after: func(m *made) {
			m.files[TagManifest] = bytes.ToUpper(m.files[TagManifest][:64:64])
			m.files[TagManifest] = append(m.files[TagManifest], m.manifest(false)[64:]...)
		}, stranger: true, code: CheckSignature, file: TagSignature, message: "the signature of tagmanifest-sha256.txt is wrong: what is signed is something else"},
		"no signature where one is expected": {before: func(m *made) { m.unsigned = true }, code: CheckSignature, file: TagSignature, message: "the bag is not signed: expected a signature by a key of trusted-keys"},
		"signature of another kind":          {after: func(m *made) { m.signBag(otherKey) }, stranger: true, code: CheckSignature, file: TagSignature, message: "orchestrators sign with Ed25519"},
		"foreign key for ssh-keygen": {before: func(m *made) {
			own := m.key
			m.key = foreign
			m.files[Signers] = []byte(m.signers())
			m.key = own
		}, code: CheckSignature, file: Signers, message: `line 1 has a foreign key for "orchestrator"`},
		"nonsense for ssh-keygen": {before: func(m *made) { m.files[Signers] = []byte("alpha x\n") }, code: CheckSignature, file: Signers, message: "line 1 is no line of allowed signers"},
		"nonsense as keys":        {before: func(m *made) { m.files[SigningKeys] = []byte("x\n") }, stranger: true, code: CheckSignature, file: SigningKeys, message: "expected a public key"},

		"changed sheet": {before: func(m *made) { m.files[SheetFile(madeRun)] = []byte("{}") }, code: CheckSheets, file: SheetFile(madeRun), message: "its hash is 44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
		"sheet of another run": {before: func(m *made) {
			m.files[SheetFile(madeRun)], m.files[SheetSignatureFile(madeRun)] = m.files[SheetFile(labRun)], m.files[SheetSignatureFile(labRun)]
			m.index.Runs[0].SheetHash = m.index.Runs[1].SheetHash
		}, code: CheckSheets, file: SheetSignatureFile(madeRun), message: "the signature is wrong"},
		"sheet signed by another": {before: func(m *made) { m.sign(madeRun, foreign) }, code: CheckSheets, file: SheetSignatureFile(madeRun), message: "it is a foreign signature: by key \"" + foreignID},
		"no signature of a sheet": {before: func(m *made) { delete(m.files, SheetSignatureFile(madeRun)) }, code: CheckContents, file: SheetSignatureFile(madeRun), message: "by the index the sheet is signed"},
		"nonsense for a signature": {before: func(m *made) { m.files[SheetSignatureFile(madeRun)] = []byte(`{"by": 1}`) }, code: CheckSheets, file: SheetSignatureFile(madeRun),
			message: "it is no signature of a run sheet"},

		"journal of another node":       {before: func(m *made) { m.files[alpha(JournalFile)] = m.files[JournalFile(madeRun, "bravo")] }, code: CheckJournals, file: alpha(JournalFile), message: `line 1: record 1 is of run "abcd2345-1", node "bravo"`},
		"journal of another run":        {before: func(m *made) { m.files[alpha(JournalFile)] = m.files[JournalFile(labRun, "alpha")] }, code: CheckJournals, file: alpha(JournalFile), message: `line 1: record 1 is of run "abcd2345-2"`},
		"journal with a line left out":  {before: func(m *made) { m.files[alpha(JournalFile)] = cutLines(m.files[alpha(JournalFile)], 3) }, code: CheckJournals, file: alpha(JournalFile), message: "line 4: record 5 follows record 3"},
		"journal without its end":       {before: func(m *made) { m.files[alpha(JournalFile)] = cutLines(m.files[alpha(JournalFile)], 21) }, code: CheckJournals, file: alpha(JournalFile), message: "it has 21 records, the index has 22"},
		"journal that ends in a line":   {before: func(m *made) { m.files[alpha(JournalFile)] = append(m.files[alpha(JournalFile)], "0000"...) }, code: CheckJournals, file: alpha(JournalFile), message: "line 23: the file ends in the middle of it"},
		"journal with more behind it":   {before: moreBehind, code: CheckJournals, file: alpha(JournalFile), message: "line 23: record 23 (waiting) follows the end of the journal"},
		"journal with a wrong checksum": {before: func(m *made) { m.files[alpha(JournalFile)][0] ^= 1 }, code: CheckJournals, file: alpha(JournalFile), message: "line 1: the record's checksum is"},
		"journal with a long line":      {before: func(m *made) { m.files[alpha(JournalFile)] = bytes.Repeat([]byte("x"), 1<<20) }, code: CheckJournals, file: alpha(JournalFile), message: "line 1: it has more than 983049 bytes"},
		"journal of another sheet": {before: func(m *made) {
			r := m.index.Runs[0]
			r.SheetHash = strings.Repeat("0", 64)
			m.files[alpha(JournalFile)] = m.journal(&r, m.nodes[0], 20)
		}, code: CheckJournals, file: alpha(JournalFile), message: "line 1: record 1: the node ran the sheet"},
		"journal written anew": {before: func(m *made) {
			m.files[alpha(JournalFile)] = m.journal(&m.index.Runs[0], m.nodes[0], 21)
			m.index.Runs[0].Nodes[0].Records = 23
		}, code: CheckStatements, file: alpha(StatementFile), message: "the node signed 22 records, data/runs/abcd2345-1/alpha/journal.jsonl has 23"},
		"journal with another record": {before: func(m *made) {
			text := cutLines(m.files[alpha(JournalFile)], 21)
			m.files[alpha(JournalFile)] = journal.AppendLine(text, m.record(madeRun, m.nodes[0], 22, journal.TypeRunEnded, journal.RunEnded{End: journal.RunCompleted, Reason: "x"}))
		}, code: CheckStatements, file: alpha(StatementFile), message: "the node signed other records than data/runs/abcd2345-1/alpha/journal.jsonl has"},

		"statement on another run":     {before: state(func(s *journal.Statement) { s.Run = labRun }), code: CheckStatements, file: alpha(StatementFile), message: `it is on the journal of run "abcd2345-2", node "alpha", role "client"; expected run abcd2345-1`},
		"statement with another sheet": {before: state(func(s *journal.Statement) { s.SheetHash = "x" }), code: CheckStatements, file: alpha(StatementFile), message: `it is on a run with the sheet "x"`},
		"statement with other bytes":   {before: state(func(s *journal.Statement) { s.Bytes++ }), code: CheckStatements, file: alpha(StatementFile), message: "the node signed"},
		"no statement":                 {before: func(m *made) { delete(m.files, alpha(StatementFile)) }, code: CheckContents, file: alpha(StatementFile), message: "by the index the journal is signed"},
		"nonsense for a statement":     {before: func(m *made) { m.files[alpha(StatementFile)] = []byte("x") }, code: CheckStatements, file: alpha(StatementFile), message: "it is no statement on a journal"},
		"statement signed by another":  {before: func(m *made) { m.signStatement(madeRun, "alpha", m.nodes[1].key) }, code: CheckStatements, file: alpha(StatementSignatureFile), message: "it is a foreign signature"},
		"statement changed": {before: func(m *made) { m.files[alpha(StatementFile)] = append(m.files[alpha(StatementFile)], '\n') }, code: CheckStatements, file: alpha(StatementSignatureFile),
			message: "the signature of node alpha's statement is wrong: what is signed is something else"},

		"expired certificate": {before: func(m *made) { m.files[alpha(CertificateFile)] = certify(m, m.ca, "alpha", -2, -1) }, code: CheckStatements, file: alpha(CertificateFile),
			message: "the certificate expired at 2026-04-30 12:00:00 UTC, and node alpha signed at 2026-05-01 12:00:00 UTC"},
		"certificate of later": {before: func(m *made) { m.files[alpha(CertificateFile)] = certify(m, m.ca, "alpha", 1, 2) }, code: CheckStatements, file: alpha(CertificateFile),
			message: "the certificate is valid from 2026-05-02 12:00:00 UTC, and node alpha signed at 2026-05-01 12:00:00 UTC"},
		"certificate of another authority": {before: func(m *made) { m.files[alpha(CertificateFile)] = certify(m, other, "alpha", -2, 2) }, code: CheckStatements, file: alpha(CertificateFile),
			message: "it is a certificate of another authority than the one in data/trust/authority.pem"},
		"certificate of another node": {before: func(m *made) { m.files[alpha(CertificateFile)] = certify(m, m.ca, "bravo", -2, 2) }, code: CheckStatements, file: alpha(CertificateFile), message: `it is a certificate of "bravo", expected one of node alpha`},
		"nonsense for a certificate":  {before: func(m *made) { m.files[alpha(CertificateFile)] = []byte("x") }, code: CheckStatements, file: alpha(CertificateFile), message: "expected one certificate in PEM"},
		"nonsense for the authority":  {before: func(m *made) { m.files[Authority] = []byte("x") }, code: CheckStatements, file: Authority, message: "expected certificates in PEM and nothing else"},
		"a key for the authority":     {before: func(m *made) { m.files[Authority] = pem.EncodeToMemory(&pem.Block{Type: "X", Bytes: nil}) }, code: CheckStatements, file: Authority, message: "expected certificates"},
		"no authority":                {before: func(m *made) { delete(m.files, Authority) }, code: CheckContents, file: Authority, message: "a journal is signed"},
		"no table":                    {before: func(m *made) { delete(m.files, Rows+"/runs.jsonl") }, code: CheckContents, file: Rows + "/runs.jsonl", message: "the index names the table"},
		"no export":                   {before: func(m *made) { delete(m.files, Results+"/results.json") }, code: CheckContents, file: Results + "/results.json", message: "the index names the exported file"},
		"no plan":                     {before: func(m *made) { delete(m.files, Plan) }, code: CheckContents, file: Plan, message: "each bag has one"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMade(t)
			if c.before != nil {
				c.before(m)
			}
			m.seal()
			if c.after != nil {
				c.after(m)
			}
			known := m.knownKeys()
			if c.stranger {
				known = Known{}
			}
			requireFinding(t, m.verdict(known), c.code, c.file, c.message)
		})
	}
}

// cutLines is a journal without one line; of the last one, without what follows it, too.
func cutLines(text []byte, n int) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	return bytes.Join(append(append([][]byte{}, lines[:n]...), lines[n+1:]...), nil)
}

func moreBehind(m *made) {
	m.files[JournalFile(madeRun, "alpha")] = journal.AppendLine(m.files[JournalFile(madeRun, "alpha")], m.record(madeRun, m.nodes[0], 23, journal.TypeWaiting, journal.Waiting{}))
}

// What is not signed is said, and is no finding where nobody expects a signature.
func TestNotSigned(t *testing.T) {
	m := newMade(t)
	m.unsigned = true
	m.index.Complete, m.index.Missing = false, []string{"report.pdf: no Typst is here"}
	m.index.Runs[1].SheetKey = ""
	delete(m.files, SheetSignatureFile(labRun))
	m.seal()
	v := m.verdict(Known{})
	require.Empty(t, findings(v))
	require.Equal(t, NotChecked, v.Check(CheckSignature).State)
	require.Equal(t, []string{"the bag is not signed: it has no tagmanifest-sha256.txt.sig"}, v.Check(CheckSignature).Why)
	require.Equal(t, []string{"the sheet of run abcd2345-2 is not signed"}, v.Check(CheckSheets).Why)
	require.Equal(t, []string{"a run was under way when the bag was packed", "by the index: report.pdf: no Typst is here"}, v.Check(CheckContents).Why)
	require.Nil(t, v.SignedBy())
	require.Contains(t, v.Means[0], "anybody can have made it")
}

// A verdict lists no more findings than a person reads.
func TestManyFindings(t *testing.T) {
	m := newMade(t)
	m.seal()
	for i := range 150 {
		m.files[Payload+"/"+strings.Repeat("x", i+1)] = []byte("x")
	}
	c := m.verdict(Known{}).Check(CheckBag)
	require.Len(t, c.Findings, maxListed)
	require.Equal(t, 51, c.More) // and the sum of the payload
}

// The check ends with its context.
func TestCheckEnds(t *testing.T) {
	m := newMade(t)
	m.seal()
	bag, err := openBytes(m.zip(), DefaultLimits())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Verify(ctx, bag, Known{}, func(doing string, _ float64) {
		if strings.HasSuffix(doing, "journal.jsonl") {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
}

// A record of the longest length is read.
func TestLongLines(t *testing.T) {
	record := []byte(`{"seq":1,"run":"` + strings.Repeat("x", journal.MaxRecord-30) + `"}`)
	lines := newLines(strings.NewReader(string(journal.AppendLine(nil, record))), journalLine)
	text, err := lines.next()
	require.NoError(t, err)
	got, err := lines.record(text)
	require.NoError(t, err)
	require.Equal(t, record, got)
	_, err = lines.next()
	require.ErrorIs(t, err, io.EOF)
}
