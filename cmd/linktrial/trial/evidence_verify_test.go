package trial

import (
	"archive/zip"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/signature"
	"linktrial/internal/sshsig"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/security/signing"
)

// madeResults is as much of results.json as an import looks at before the orchestrator does.
const madeResults = `{"dataset": {"campaign": "abcd2345"}}`

// writeBag writes a bag without runs; signed with key where that is not nil.
func writeBag(t *testing.T, key ed25519.PrivateKey, change func(files map[string]string)) string {
	t.Helper()
	index, err := json.Marshal(evidence.Evidence{
		Format: evidence.Format, Campaign: "abcd2345", Plan: "quick-start", Packed: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Version: "v1", Schema: "47", Complete: true,
		Exports: []evidence.Export{{File: "results.json", Format: "json"}},
	})
	require.NoError(t, err)
	files := map[string]string{
		evidence.Index: string(index), evidence.Plan: "name: quick-start\n", evidence.Crate: "{}", evidence.Results + "/results.json": madeResults,
		evidence.ReadMe: "x", evidence.Signers: "", evidence.Declaration: "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
	}
	if key != nil {
		files[evidence.SigningKeys] = string(signature.FormatKeys("", signature.PublicOf(key)))
	}
	size, n := 0, 0
	for name, text := range files {
		if strings.HasPrefix(name, "data/") {
			size, n = size+len(text), n+1
		}
	}
	files[evidence.Info] = fmt.Sprintf("Payload-Oxum: %d.%d\n", size, n)
	manifest := func(payload bool) (out string) {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if strings.HasPrefix(name, "data/") == payload {
				out += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(files[name])), name)
			}
		}
		return out
	}
	files[evidence.Manifest] = manifest(true)
	files[evidence.TagManifest] = manifest(false)
	if key != nil {
		files[evidence.TagSignature], err = sshsig.Sign(key, sshsig.Evidence, []byte(files[evidence.TagManifest]))
		require.NoError(t, err)
	}
	if change != nil {
		change(files)
	}
	path := filepath.Join(t.TempDir(), "trial.zip")
	f, err := os.Create(path)
	require.NoError(t, err)
	w := zip.NewWriter(f)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		e, err := w.Create(evidence.Folder("abcd2345") + "/" + name)
		require.NoError(t, err)
		_, err = e.Write([]byte(files[name]))
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(w.Close(), f.Close()))
	return path
}

// importing is an orchestrator that takes imports.
type importing struct {
	linktrialv1connect.UnimplementedResultServiceHandler
	asked *linktrialv1.ImportCampaignRequest
}

func (i *importing) ImportCampaign(_ context.Context, q *connect.Request[linktrialv1.ImportCampaignRequest]) (*connect.Response[linktrialv1.ImportCampaignResponse], error) {
	i.asked = q.Msg
	return connect.NewResponse(&linktrialv1.ImportCampaignResponse{Imported: &linktrialv1.ImportedCampaign{Imported: &linktrialv1.ImportOrigin{CampaignId: "abcd2345"}, Plan: "quick-start", Runs: 1, Trials: 3}}), nil
}

func (i *importing) evidence(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewResultServiceHandler(i))
	return runAgainst(t, mux, newEvidence, args...)
}

// keyFile is a file of trusted keys with this one.
func keyFile(t *testing.T, key ed25519.PrivateKey) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trusted-keys")
	require.NoError(t, os.WriteFile(path, signature.FormatKeys("", signature.PublicOf(key)), 0o644))
	return path
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	return key
}

func TestEvidenceVerify(t *testing.T) {
	key, foreign := newKey(t), newKey(t)
	good := writeBag(t, key, nil)
	out, err := (&importing{}).evidence(t, "verify", good, "--no-rebuild")
	require.NoError(t, err)
	require.Contains(t, out, "trial.zip: campaign abcd2345, plan quick-start, packed at 2026-05-01 12:00:00 UTC by Linktrial v1\nCHECK ")
	require.Regexp(t, `signature +partly checked +1 signatures +0\n`, out)
	require.Contains(t, out, "compare its fingerprint "+signature.PublicOf(key).Fingerprint())
	require.Regexp(t, `the bag +orchestrator +`+signature.PublicOf(key).ID()+` +no +–\n`, out)

	out, err = (&importing{}).evidence(t, "verify", good, "--no-rebuild", "--key", keyFile(t, key))
	require.NoError(t, err)
	require.Regexp(t, `signature +passed +1 signatures +0\n`, out)

	out, err = (&importing{}).evidence(t, "verify", good, "--no-rebuild", "--key", keyFile(t, foreign))
	require.Equal(t, setting.ExitCode(1), err)
	require.Contains(t, out, "FINDING tagmanifest-sha256.txt.sig: it is a foreign signature: by key "+signature.PublicOf(key).ID())

	out, err = (&importing{}).evidence(t, "verify", good, "--no-rebuild", "--json")
	require.NoError(t, err)
	var v struct {
		Checks   []struct{ Check, State string }
		Findings *int
	}
	require.NoError(t, json.Unmarshal([]byte(out), &v))
	require.Equal(t, 0, *v.Findings)
	require.Len(t, v.Checks, 7)

	changed := writeBag(t, key, func(files map[string]string) { files[evidence.Plan] += "\x1b[2J" })
	out, err = (&importing{}).evidence(t, "verify", changed)
	require.Equal(t, setting.ExitCode(1), err)
	require.Contains(t, out, "FINDING data/plan.yaml: it was changed")
	require.Contains(t, out, "The exported files were not made again: the bag has findings.")

	for _, args := range [][]string{{keyFile(t, key)}, {good, "--key", good}, {good, "--key", "none"}, {"none.zip"}} {
		_, err = (&importing{}).evidence(t, append([]string{"verify"}, args...)...)
		var failed setting.Failed
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 2, failed.Code)
	}
}

// The keys of an orchestrator on this machine are known, and the authorities of linktrial
// trust.
func TestEvidenceKnownHere(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	old := client.Trusted
	defer func() { client.Trusted = old }()
	data, key := t.TempDir(), newKey(t)
	client.Trusted = client.Trust{Data: data}
	known, err := knownHere("")
	require.NoError(t, err)
	require.Empty(t, known)

	ring, err := signing.Open(signing.Dir(data))
	require.NoError(t, err)
	known, err = knownHere("")
	require.NoError(t, err)
	require.Equal(t, ring.Fingerprint(), known.Keys[0].Fingerprint())
	known, err = knownHere(keyFile(t, key))
	require.NoError(t, err)
	require.Equal(t, []signature.PublicKey{signature.PublicOf(key)}, known.Keys)

	kept := client.KeptPath("10.0.0.1:7700")
	require.NoError(t, os.MkdirAll(filepath.Dir(kept), 0o755))
	require.NoError(t, os.WriteFile(kept, []byte("x"), 0o644))
	_, err = knownHere("")
	require.ErrorContains(t, err, kept+": expected a CERTIFICATE in PEM, found none")
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(kept, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	known, err = knownHere("")
	require.NoError(t, err)
	require.Equal(t, der, known.Authorities[0].Raw)
}

// What making the files again comes to is part of the verdict.
func TestEvidenceRebuilt(t *testing.T) {
	bag, v, err := verifyBag(t.Context(), writeBag(t, newKey(t), nil), evidence.Known{}, func(string, float64) {})
	require.NoError(t, err)
	defer bag.Close()
	made := func(r *evidence.Rebuilt, err error) rebuildFunc {
		return func(_ context.Context, got *evidence.Bag, _ func(string, float64)) (*evidence.Rebuilt, error) {
			require.Same(t, bag, got)
			return r, err
		}
	}
	print := func(notMade string) string {
		var b strings.Builder
		require.NoError(t, printVerdict(&b, v, notMade, false))
		return b.String()
	}
	none := func(string, float64) {}
	require.Equal(t, "no database", rebuildInto(t.Context(), made(nil, errors.New("no database")), bag, v, none))
	require.Contains(t, print("no database"), "The exported files were not made again: no database.\n")

	same := &evidence.Rebuilt{Files: []evidence.RebuiltFile{{File: "results.json", Same: true}, {File: "report.pdf", NotMade: "no Typst is here"}}, Notes: []string{"another version"}}
	require.Empty(t, rebuildInto(t.Context(), made(same, nil), bag, v, none))
	require.Zero(t, v.Findings())
	require.Contains(t, print(""), "Of 2 exported files, 1 are made again from the journals byte for byte the same, 0 differ, 1 were not made again.\n  report.pdf: no Typst is here\n  another version\n")

	same.Files[0] = evidence.RebuiltFile{File: "results.json", Differs: "line 1"}
	same.Problems = []string{"a mark does not follow"}
	require.Equal(t, 2, v.Findings())
	require.Contains(t, print(""), "  results.json: line 1\n  report.pdf: no Typst is here\n  a mark does not follow\n")
}

func TestEvidenceImport(t *testing.T) {
	key := newKey(t)
	id := signature.PublicOf(key).ID()
	for _, c := range []struct {
		key    ed25519.PrivateKey
		args   []string
		origin string
	}{
		{key, []string{"--origin", "company B", "--key", keyFile(t, key)}, "company B (from evidence, signed by " + id + ")"},
		{key, []string{"--origin", "company B"}, "company B (from evidence, signed by " + id + ", not known here)"},
		{nil, nil, "from evidence that is not signed"},
	} {
		o := &importing{}
		out, err := o.evidence(t, append([]string{"import", writeBag(t, c.key, nil), "--by", "ada"}, c.args...)...)
		require.NoError(t, err)
		require.Contains(t, out, "Campaign abcd2345 (quick-start) is imported: 1 run, 3 trials. ")
		require.Equal(t, c.origin, o.asked.Origin)
		require.Equal(t, madeResults, string(o.asked.Content))
		require.Equal(t, "ada", o.asked.By)
	}

	o := &importing{}
	out, err := o.evidence(t, "import", writeBag(t, key, func(files map[string]string) { files[evidence.Plan] = "x" }))
	require.ErrorContains(t, err, "trial.zip is not imported: the check of it has 2 findings")
	require.Contains(t, out, "FINDING data/plan.yaml: it ")
	require.Nil(t, o.asked)
	_, err = o.evidence(t, "import", writeBag(t, key, func(files map[string]string) { delete(files, evidence.Results+"/results.json") }))
	require.Error(t, err)
	require.Nil(t, o.asked)

	bag, _, err := verifyBag(t.Context(), writeBag(t, key, nil), evidence.Known{}, func(string, float64) {})
	require.NoError(t, err)
	defer bag.Close()
	bag.Index.Campaign = "wxyz2345"
	_, err = importedResults(bag)
	require.EqualError(t, err, `trial.zip: data/results/results.json: it has the results of campaign "abcd2345", and the bag is the evidence of campaign wxyz2345`)
}
