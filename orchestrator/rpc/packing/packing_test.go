package packing_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/sshsig"
	"linktrial/internal/testkind"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/rpc/packing"
	"linktrial/orchestrator/rpc/results"
	"linktrial/orchestrator/security/signing"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var _ = testkind.OfPackage(testkind.Exact, "has programs check a bag, whose answers no load changes")

// nodes are journals as nodes wrote them, and a key of each node that signs.
type nodes struct {
	t        *testing.T
	journals map[string]*storetest.Journal // by RUN/NODE
	deleted  bool                          // the samples are
	notKept  bool                          // the first three records are not
	signs    map[string]*ecdsa.PrivateKey
	sheets   map[string]string // hashes
	ca       *x509.Certificate
	caKey    *ecdsa.PrivateKey
}

func newNodes(t *testing.T) *nodes {
	n := &nodes{t: t, journals: map[string]*storetest.Journal{}, signs: map[string]*ecdsa.PrivateKey{}, sheets: map[string]string{}}
	n.caKey = n.key()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	n.ca = template
	n.ca = n.cert(template, n.caKey)
	return n
}

func (n *nodes) key() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(n.t, err)
	return key
}

func (n *nodes) cert(template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, n.ca, key.Public(), n.caKey)
	require.NoError(n.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(n.t, err)
	return cert
}

func (n *nodes) JournalRecords(_ context.Context, run, node string) iter.Seq2[packing.KeptRecord, error] {
	return func(yield func(packing.KeptRecord, error) bool) {
		j := n.journals[run+"/"+node]
		if j == nil {
			return
		}
		for i, b := range j.Records {
			r := packing.KeptRecord{Seq: int64(i + 1), JSON: b, SHA256: sha256.Sum256(b)}
			switch {
			case n.notKept && i < 3:
				r.JSON, r.Absent = nil, packing.NotKept
			case n.deleted && bytes.Contains(b, []byte(`"type":"samples"`)):
				r.JSON, r.Absent = nil, packing.SamplesDeleted
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (n *nodes) Statement(_ context.Context, run, node string) (*packing.Signed, error) {
	key, j := n.signs[node], n.journals[run+"/"+node]
	if key == nil || j == nil {
		return &packing.Signed{}, nil
	}
	d := journal.NewDigests()
	for _, b := range j.Records {
		d.Add(b)
	}
	s := journal.Statement{Kind: journal.StatementKind, Run: run, Node: node, Role: j.Role, SheetHash: n.sheets[run], SignedAt: time.Now().UTC()}
	d.Set(&s)
	text, err := s.Encode()
	if err != nil {
		return nil, err
	}
	signature, err := sshsig.Sign(key, sshsig.Journal, text)
	if err != nil {
		return nil, err
	}
	cert := n.cert(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: node}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}, key)
	return &packing.Signed{Statement: text, Signature: signature, Certificate: cert.Raw}, nil
}

// served is a service with a database, over HTTP.
type served struct {
	base   string
	client linktrialv1connect.EvidenceServiceClient
	store  *store.Store
	db     *pgx.Conn
	nodes  *nodes
	keys   *signing.Keyring
	folder string
	values *results.Service
}

var packedAt = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

func serve(t *testing.T, change func(*packing.Config)) *served {
	t.Helper()
	url := storetest.URL(t)
	st, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	t.Cleanup(st.Close)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	cat, err := catalog.Load(catalog.Config{})
	require.NoError(t, err)
	keys, err := signing.Ephemeral()
	require.NoError(t, err)
	s := &served{store: st, db: conn, nodes: newNodes(t), keys: keys, folder: filepath.Join(t.TempDir(), "evidence"), values: results.New(results.Config{Store: st, Catalog: cat})}
	cfg := packing.Config{Store: st, Journals: s.nodes, Results: s.values, Catalog: cat, Keys: keys, Authority: func() *x509.Certificate { return s.nodes.ca }, Folder: s.folder, Version: "test",
		Now: func() time.Time { return packedAt }}
	if change != nil {
		change(&cfg)
	}
	service := packing.New(cfg)
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewEvidenceServiceHandler(service))
	mux.HandleFunc("GET "+packing.DownloadPath, service.Download)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	s.base, s.client = web.URL, linktrialv1connect.NewEvidenceServiceClient(http.DefaultClient, web.URL)
	return s
}

// add stores a campaign of one run, with a mark and a command of a person.
func (s *served) add(t *testing.T, campaign string, ended bool) (run string, sheet *runsheet.Sheet) {
	t.Helper()
	sheet = storetest.Sheet(6)
	run = storetest.AddRunOf(t, s.store, campaign, "test", "name: test # as it was written\n", sheet)
	encoded, err := sheet.Encode()
	require.NoError(t, err)
	s.nodes.sheets[run] = runsheet.Hash(encoded)
	signed := s.keys.Sign(run, encoded)
	s.exec(t, `INSERT INTO run_signatures VALUES ($1, $2, $3)`, run, signed.KeyID, signed.Bytes)
	for _, j := range []*storetest.Journal{storetest.Lead(run, sheet, 20), storetest.Serve(run, sheet)} {
		if !ended {
			j.Records = j.Records[:len(j.Records)-1]
		}
		var records []ingest.Record
		for i, r := range j.Records {
			records = append(records, ingest.Record{Seq: int64(i + 1), JSON: r})
		}
		_, err := ingest.New(ingest.Config{Store: s.store}).Deliver(t.Context(), run, string(j.Role), records)
		require.NoError(t, err)
		s.nodes.journals[run+"/"+string(j.Role)] = j
	}
	s.exec(t, `UPDATE runs SET state = 'running', prepared_at = created_at, started_at = '2026-05-04T10:00:00Z' WHERE id = $1`, run)
	if ended {
		s.exec(t, `UPDATE runs SET state = 'completed', ended_at = '2026-05-04T11:00:00Z' WHERE id = $1`, run)
	}
	s.exec(t, `INSERT INTO attempt_marks (id, run_id, trial, attempt, invalid, reason, given_by) VALUES ($1, $2, 1, 1, true, 'an antenna fell', 'Ada <b>')`, "m-"+run, run)
	s.exec(t, `INSERT INTO run_commands (id, run_id, kind, trial, given_by) VALUES ($1, $2, 'skip', 5, 'linktrial')`, "c-"+run, run)
	return run, sheet
}

func (s *served) exec(t *testing.T, text string, args ...any) {
	t.Helper()
	_, err := s.db.Exec(t.Context(), text, args...)
	require.NoError(t, err)
}

// pack is the last message of a campaign that is packed.
func (s *served) pack(ctx context.Context, campaign string) (*linktrialv1.PackResponse, error) {
	stream, err := s.client.Pack(ctx, connect.NewRequest(&linktrialv1.PackRequest{CampaignId: campaign}))
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	var last *linktrialv1.PackResponse
	for stream.Receive() {
		last = stream.Msg()
	}
	return last, stream.Err()
}

// fetch unpacks a bag into a folder, and returns the folder of the bag and its files.
func (s *served) fetch(t *testing.T, m *linktrialv1.PackResponse) (dir string, files map[string][]byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+packing.DownloadPath+"?key="+m.Key, http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.EqualValues(t, m.Bytes, len(b))
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	to, root := t.TempDir(), evidence.Folder(m.CampaignId)
	files = map[string][]byte{}
	for _, f := range z.File {
		require.True(t, f.Modified.Equal(packedAt), f.Name)
		name, ok := strings.CutPrefix(f.Name, root+"/")
		require.True(t, ok, f.Name)
		in, err := f.Open()
		require.NoError(t, err)
		files[name], err = io.ReadAll(in)
		require.NoError(t, err)
		at := filepath.Join(to, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
		require.NoError(t, os.WriteFile(at, files[name], 0o600))
	}
	return filepath.Join(to, root), files
}

func index(t *testing.T, files map[string][]byte) *evidence.Evidence {
	t.Helper()
	var e evidence.Evidence
	require.NoError(t, json.Unmarshal(files[evidence.Index], &e))
	return &e
}

// run types a command in a folder.
func run(t *testing.T, dir, input, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s: %s", program, strings.Join(args, " "), out)
	return string(out)
}

// A bag has everything, and what is in it is what the nodes, the store and the exports have.
func TestPack(t *testing.T) {
	s := serve(t, nil)
	id, _ := s.add(t, "first", true)
	s.nodes.signs["client"] = s.nodes.key()
	m, err := s.pack(t.Context(), "fir")
	require.NoError(t, err)
	require.True(t, m.Complete)
	require.Equal(t, "linktrial-first-evidence.zip", m.FileName)
	require.Equal(t, []int32{1, 2, 1}, []int32{m.Runs, m.Journals, m.SignedJournals})
	dir, files := s.fetch(t, m)
	manifests(t, files)
	tools(t, dir, files, m)

	for _, node := range []string{"client", "server"} {
		var want []byte
		for _, r := range s.nodes.journals[id+"/"+node].Records {
			want = journal.AppendLine(want, r)
		}
		require.Equal(t, string(want), string(files[evidence.JournalFile(id, node)]), node)
		require.NotContains(t, files, evidence.RecordDigests(id, node))
	}
	statement, err := journal.DecodeStatement(files[evidence.StatementFile(id, "client")])
	require.NoError(t, err)
	require.Equal(t, sum(files[evidence.JournalFile(id, "client")]), statement.SHA256)
	require.Equal(t, "name: test # as it was written\n", string(files[evidence.Plan]))
	require.Equal(t, s.nodes.sheets[id], sum(files[evidence.SheetFile(id)]))
	var signed evidence.SheetSignature
	require.NoError(t, json.Unmarshal(files[evidence.SheetSignatureFile(id)], &signed))
	require.Len(t, signed.Signature, 64)
	require.Contains(t, string(files[evidence.SigningKeys]), signed.KeyID)
	require.Contains(t, string(files[evidence.Rows+"/attempt_marks.jsonl"]), `"given_by": "Ada <b>"`)
	require.Contains(t, string(files[evidence.Rows+"/runs.jsonl"]), `"started_at": "2026-05-04T10:00:00+00:00"`)
	require.NotContains(t, string(files[evidence.Rows+"/runs.jsonl"]), `"sheet"`)
	require.Empty(t, files[evidence.Rows+"/attempts.jsonl"], "what follows from journals is in none")

	e := index(t, files)
	require.True(t, e.Complete)
	require.Equal(t, evidence.Format, e.Format)
	require.Equal(t, m.Missing, e.Missing)
	for _, want := range []string{"the signature of the journal of node server of run first-1: the node signed nothing", "the journal of node relay of run first-1: nothing of it is stored", "the manifest of the driver of test: this orchestrator does not have the driver"} {
		require.Contains(t, strings.Join(e.Missing, "\n"), want)
	}
	require.Len(t, e.Runs[0].Nodes, 3)
	require.Equal(t, evidence.Node{Name: "client", Role: "client", Records: int64(len(s.nodes.journals[id+"/client"].Records)), Ended: "completed"}, e.Runs[0].Nodes[0])
	s.exports(t, e, files)
}

// exports holds the exported files of a bag against those that the service makes.
func (s *served) exports(t *testing.T, e *evidence.Evidence, files map[string][]byte) {
	t.Helper()
	require.GreaterOrEqual(t, len(e.Exports), 15)
	for _, x := range e.Exports {
		var want bytes.Buffer
		require.NoError(t, s.values.Export(t.Context(), &linktrialv1.ResultsRequest{RunId: e.Campaign, Format: x.Format}, func(m *linktrialv1.ResultsResponse) error {
			want.Write(m.Content)
			return nil
		}))
		require.True(t, bytes.Equal(want.Bytes(), files[evidence.Results+"/"+x.File]), x.File)
	}
	for _, name := range []string{"results.json", "trials.csv", "samples.csv", "report.html"} {
		require.True(t, slices.ContainsFunc(e.Exports, func(x evidence.Export) bool { return x.File == name }), name)
	}
}

func sum(b []byte) string {
	x := sha256.Sum256(b)
	return hex.EncodeToString(x[:])
}

// manifests holds every file against the line that it has to have.
func manifests(t *testing.T, files map[string][]byte) {
	t.Helper()
	seen := map[string]bool{evidence.TagManifest: true, evidence.TagSignature: true}
	for _, of := range []struct {
		manifest string
		payload  bool
	}{{evidence.Manifest, true}, {evidence.TagManifest, false}} {
		for _, l := range strings.Split(strings.TrimSuffix(string(files[of.manifest]), "\n"), "\n") {
			digest, name, ok := strings.Cut(l, "  ")
			require.True(t, ok, l)
			require.Equal(t, of.payload, strings.HasPrefix(name, "data/"), name)
			require.Equal(t, sum(files[name]), digest, name)
			require.False(t, seen[name], name)
			seen[name] = true
		}
	}
	for name := range files {
		require.True(t, seen[name], "%s is in no manifest", name)
	}
}

// tools has programs that know nothing of Linktrial check a bag, as its README says.
func tools(t *testing.T, dir string, files map[string][]byte, m *linktrialv1.PackResponse) {
	t.Helper()
	text := string(files[evidence.ReadMe])
	require.Contains(t, text, m.Fingerprint)
	require.Contains(t, text, m.SshFingerprint)
	commands := 0
	for _, l := range strings.Split(text, "\n") {
		if command, ok := strings.CutPrefix(l, "  "); ok && (strings.HasPrefix(command, "ssh-keygen") || strings.HasPrefix(command, "sha256sum")) {
			out := run(t, dir, "", "sh", "-c", command)
			if strings.Contains(command, "linktrial-evidence") {
				require.Contains(t, out, m.SshFingerprint)
			}
			commands++
		}
	}
	require.Equal(t, 5, commands, text)
	for name, script := range map[string]string{
		"bagit": `import bagit, sys
b = bagit.Bag(".")
b.validate()
assert b.info["External-Identifier"] == "first", b.info`,
		"rocrate": `from rocrate.rocrate import ROCrate
import os
c = ROCrate("data")
files = {e.id for e in c.get_entities() if e.type == "File"}
there = {os.path.relpath(os.path.join(d, f), "data") for d, _, names in os.walk("data") for f in names}
assert files == there - {"ro-crate-metadata.json"}, files ^ there
for e in c.get_entities():
    if e.type == "File":
        assert int(e["contentSize"]) == os.path.getsize(os.path.join("data", e.id)), e.id
        assert e["encodingFormat"], e.id
runs = c.get_by_type("CreateAction")
assert [r["startTime"] for r in runs] == ["2026-05-04T10:00:00Z"], runs
assert c.root_dataset["license"]["name"] == "No licence stated", c.root_dataset
people = c.get_by_type("Person")
assert [p["name"] for p in people] == ["Ada <b>"], people
for e in c.get_entities():
    for key, value in e.properties().items():
        for v in value if isinstance(value, list) else [value]:
            if isinstance(v, dict) and not v["@id"].startswith("http"):
                assert c.get(v["@id"]) is not None, (e.id, key, v)`,
	} {
		t.Logf("%s: %s", name, run(t, dir, script, python(t), "-"))
	}
}

// python is an interpreter with the packages bagit and rocrate.
func python(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("LINKTRIAL_BAG_TOOLS")
	if dir == "" {
		dir = "/var/cache/linktrial/bag-tools"
	}
	at := filepath.Join(dir, "bin", "python3")
	if _, err := os.Stat(at); err != nil {
		t.Fatalf("the Python packages bagit and rocrate are not there: 'make deps-test' installs them (%v)", err)
	}
	return at
}

// Of a run under way there is what there is, and the bag says so; the same of records that are
// not kept.
func TestPartsAreMissing(t *testing.T) {
	s := serve(t, nil)
	id, _ := s.add(t, "open", false)
	m, err := s.pack(t.Context(), "")
	require.NoError(t, err)
	require.False(t, m.Complete)
	_, files := s.fetch(t, m)
	manifests(t, files)
	require.False(t, index(t, files).Complete)
	require.Contains(t, string(files[evidence.ReadMe]), "NOT COMPLETE: a run was under way")
	require.Contains(t, string(files[evidence.ReadMe]), "- the rest of run open-1: it was under way (running)")
	require.Contains(t, string(files[evidence.ReadMe]), "- the end of the journal of node client of run open-1: ")

	client := s.nodes.journals[id+"/client"]
	s.nodes.deleted, s.nodes.notKept = true, true
	m, err = s.pack(t.Context(), "open")
	require.NoError(t, err)
	_, files = s.fetch(t, m)
	e := index(t, files)
	require.True(t, e.Runs[0].Nodes[0].SamplesDeleted)
	digests := strings.Fields(string(files[evidence.RecordDigests(id, "client")]))
	require.Len(t, digests, len(client.Records))
	var want []byte
	kept := int64(0)
	for i, r := range client.Records {
		require.Equal(t, sum(r), digests[i])
		if i >= 3 && !bytes.Contains(r, []byte(`"type":"samples"`)) {
			want = journal.AppendLine(want, r)
			kept++
		}
	}
	require.Equal(t, string(want), string(files[evidence.JournalFile(id, "client")]))
	require.Equal(t, kept, e.Runs[0].Nodes[0].Records)
	require.Contains(t, strings.Join(e.Missing, "\n"), "the samples in the journal of node client of run open-1: they were deleted")
	require.Contains(t, strings.Join(e.Missing, "\n"), "some of them were stored by a version of Linktrial")
}

// A journal ends with its end, whatever comes after it.
func TestJournalEnds(t *testing.T) {
	s := serve(t, nil)
	id, _ := s.add(t, "late", true)
	j := s.nodes.journals[id+"/server"]
	before := len(j.Records)
	j.Add(journal.TypeReceived, journal.Received{Treatment: "one", Transfer: "run-ended"})
	m, err := s.pack(t.Context(), "late")
	require.NoError(t, err)
	_, files := s.fetch(t, m)
	require.Equal(t, before, bytes.Count(files[evidence.JournalFile(id, "server")], []byte("\n")))
}

// What cannot be packed is refused with a sentence, and leaves nothing.
func TestRefused(t *testing.T) {
	s := serve(t, nil)
	_, err := s.pack(t.Context(), "")
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	s.add(t, "first", true)
	_, err = s.pack(t.Context(), "first-1")
	require.ErrorContains(t, err, "first-1 is a run: evidence is of whole campaigns; name its campaign, first")
	s.exec(t, `INSERT INTO imports (campaign_id, plan, runs, trials, created_at, place, radios, topologies, sizes_bytes, treatments, content, sha256, origin, file_name, given_by)
		VALUES ('theirs', 'p', 1, 1, now(), '', '{}', '{}', '{}', '{}', 'x', encode(sha256('x'), 'hex'), '', '', '')`)
	_, err = s.pack(t.Context(), "theirs")
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
	require.ErrorContains(t, err, "campaign theirs was imported: its evidence is packed by the orchestrator that measured it")

	broken := errors.New("the page of records 1 to 9 is damaged")
	s = serve(t, func(c *packing.Config) { c.Journals = damaged{s.nodes, broken} })
	s.add(t, "first", true)
	_, err = s.pack(t.Context(), "first")
	require.ErrorContains(t, err, "journal of node client of run first-1: ")
	require.ErrorContains(t, err, broken.Error())
	left, err := os.ReadDir(s.folder)
	require.NoError(t, err)
	require.Empty(t, left)

	s = serve(t, func(c *packing.Config) { c.Folder = "" })
	s.add(t, "first", true)
	_, err = s.pack(t.Context(), "first")
	require.ErrorContains(t, err, "this orchestrator has no data folder")
}

// damaged has journals that cannot be read.
type damaged struct {
	packing.Journals
	err error
}

func (d damaged) JournalRecords(context.Context, string, string) iter.Seq2[packing.KeptRecord, error] {
	return func(yield func(packing.KeptRecord, error) bool) { yield(packing.KeptRecord{}, d.err) }
}

// What changes while it is packed would make a bag whose results are not those of its rows.
func TestChangedMeanwhile(t *testing.T) {
	m := &marking{}
	s := serve(t, func(c *packing.Config) {
		m.Service = results.New(results.Config{Store: c.Store, Catalog: c.Catalog})
		c.Results = m
	})
	id, _ := s.add(t, "first", true)
	m.mark = func() {
		s.exec(t, `INSERT INTO attempt_marks (id, run_id, trial, attempt, invalid, reason) VALUES ('late', $1, 2, 1, true, 'r')`, id)
	}
	_, err := s.pack(t.Context(), "first")
	require.Equal(t, connect.CodeAborted, connect.CodeOf(err))
	require.ErrorContains(t, err, "pack it again")
}

// marking marks an attempt before it lists the formats.
type marking struct {
	*results.Service
	mark func()
}

func (m *marking) ListFormats(ctx context.Context, req *connect.Request[linktrialv1.ListFormatsRequest]) (*connect.Response[linktrialv1.ListFormatsResponse], error) {
	m.mark()
	return m.Service.ListFormats(ctx, req)
}

// One bag is made at a time, and what a caller leaves is removed.
func TestCallerLeaves(t *testing.T) {
	testkind.OfTest(t, testkind.RealTime, "waits for progress, which is told every second, and for what a caller left to be removed")
	begun := make(chan struct{})
	slow := serve(t, func(c *packing.Config) { c.Journals = &waiting{begun: begun} })
	slow.add(t, "first", true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := slow.client.Pack(ctx, connect.NewRequest(&linktrialv1.PackRequest{}))
	require.NoError(t, err)
	<-begun
	require.True(t, stream.Receive())
	require.Equal(t, "packing the journal of node client of run first-1", stream.Msg().Doing)
	_, err = slow.pack(t.Context(), "first")
	require.ErrorContains(t, err, "evidence is being packed now")
	cancel()
	require.Eventually(t, func() bool {
		left, err := os.ReadDir(slow.folder)
		return err == nil && len(left) == 0
	}, 20*time.Second, 10*time.Millisecond)
}

// waiting waits with its first journal until the caller has gone.
type waiting struct {
	packing.Journals
	begun chan struct{}
}

func (w *waiting) JournalRecords(ctx context.Context, _, _ string) iter.Seq2[packing.KeptRecord, error] {
	return func(yield func(packing.KeptRecord, error) bool) {
		close(w.begun)
		<-ctx.Done()
		yield(packing.KeptRecord{}, ctx.Err())
	}
}
