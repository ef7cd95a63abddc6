package people

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/auditchain"
	"linktrial/orchestrator/security/signing"
)

// kept answers as an orchestrator does, of a log in memory, in pages of two entries.
type kept struct {
	linktrialv1connect.UnimplementedAccessServiceHandler
	linktrialv1connect.UnimplementedTrustServiceHandler
	keys    *signing.Keyring
	entries []auditchain.Entry
	heads   []auditchain.Head
}

func (k *kept) write(n int) {
	for range n {
		e := auditchain.Entry{ID: int64(len(k.entries) + 1), User: "anna", Action: "A.B", Detail: "a < b", Outcome: "done"}
		e.At = time.Date(2026, 5, 1, 8, int(e.ID), 0, 0, time.UTC)
		var before auditchain.Hash
		if len(k.entries) > 0 {
			before = k.entries[len(k.entries)-1].Hash
		}
		e.Hash = e.Over(before)
		k.entries = append(k.entries, e)
	}
	last := k.entries[len(k.entries)-1]
	h := auditchain.Head{Entry: last.ID, Hash: last.Hash, Signed: last.At}
	h.Signature = k.keys.SignAuditHead(h.Message())
	k.heads = append(k.heads, h)
}

func (k *kept) ExportAudit(_ context.Context, r *connect.Request[linktrialv1.ExportAuditRequest]) (*connect.Response[linktrialv1.ExportAuditResponse], error) {
	out := &linktrialv1.ExportAuditResponse{}
	for _, e := range k.entries {
		if out.More = e.ID > r.Msg.After && len(out.Entries) == 2; out.More {
			break
		}
		if e.ID > r.Msg.After {
			out.Entries = append(out.Entries, &linktrialv1.AuditEntry{Id: e.ID, At: timestamppb.New(e.At), User: e.User, Action: e.Action, Detail: e.Detail, Outcome: e.Outcome, Hash: e.Hash[:]})
		}
	}
	for _, h := range k.heads {
		if h.Entry > r.Msg.After && (!out.More || h.Entry <= out.Entries[1].Id) {
			out.Heads = append(out.Heads, &linktrialv1.AuditHead{Entry: h.Entry, Hash: h.Hash[:], Signed: timestamppb.New(h.Signed), KeyId: h.Signature.KeyID, Signature: h.Signature.Bytes})
		}
	}
	return connect.NewResponse(out), nil
}

func (k *kept) ListSigningKeys(context.Context, *connect.Request[linktrialv1.ListSigningKeysRequest]) (*connect.Response[linktrialv1.ListSigningKeysResponse], error) {
	out := &linktrialv1.ListSigningKeysResponse{}
	for _, e := range k.keys.Keys() {
		out.Keys = append(out.Keys, &linktrialv1.SigningKey{PublicKey: e.Key[:], EndorsedBy: e.By, Endorsement: e.Endorsement})
	}
	return connect.NewResponse(out), nil
}

// Export and verify, of the orchestrator and of files, before and after somebody has
// written into the log.
func TestAuditVerify(t *testing.T) {
	keys, err := signing.Ephemeral()
	require.NoError(t, err)
	k := &kept{keys: keys}
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewAccessServiceHandler(k))
	mux.Handle(linktrialv1connect.NewTrustServiceHandler(k))
	srv := httptest.NewUnstartedServer(mux)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	defer srv.Close()
	run := func(args ...string) (string, error) {
		cmd := newAudit(&setting.Settings{Orchestrator: srv.URL})
		var out bytes.Buffer
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	whole := func(words string, args ...string) {
		t.Helper()
		out, err := run(args...)
		require.NoError(t, err)
		require.Contains(t, out, words)
	}
	broken := func(words string, args ...string) {
		t.Helper()
		out, err := run(args...)
		require.Equal(t, setting.ExitCode(1), err)
		require.Contains(t, out, " is not intact: ")
		require.Contains(t, out, words)
	}
	dir := t.TempDir()
	export := func(name string) string {
		t.Helper()
		out, err := run("export")
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(out), 0o600))
		return path
	}
	whole("has no entries", "verify")
	k.write(3)
	april := export("april")
	first := filepath.Join(dir, "keys")
	require.NoError(t, os.WriteFile(first, keys.Public(), 0o600))
	require.NoError(t, keys.Rotate())
	k.write(4)
	may := export("may")
	whole("is intact: 7 entries, the last one is entry 7 of 2026-05-01 08:07:00 UTC, and its head is signed.\nThe signatures", "verify")
	whole("is intact: 7 entries", "verify", "--trusted-keys", first, "--against", april)
	whole("is intact: 7 entries", "verify", may, "--trusted-keys", first, "--against", april)
	whole("is intact: 3 entries", "verify", april)
	broken("entries 4 to 7 are missing at the end: the last one is entry 3 of 2026-05-01 08:03:00 UTC, but entry 7 is the last one of", "verify", april, "--against", may)
	text, err := os.ReadFile(may)
	require.NoError(t, err)
	require.Len(t, strings.Split(strings.TrimSpace(string(text)), "\n"), 1+7+2)
	require.Contains(t, string(text), `"detail":"a < b"`)

	changed := filepath.Join(dir, "changed")
	require.NoError(t, os.WriteFile(changed, bytes.Replace(text, []byte(`"id":5,"at":"2026-05-01T08:05:00Z","user":"anna"`), []byte(`"id":5,"at":"2026-05-01T08:05:00Z","user":"dirk"`), 1), 0o600))
	broken("entry 5 of 2026-05-01 08:05:00 UTC was changed", "verify", changed)
	require.NoError(t, os.WriteFile(changed, text[:len(text)-9], 0o600))
	_, err = run("verify", changed)
	require.ErrorContains(t, err, "line 10: it is not a JSON object")
	other, err := signing.Ephemeral()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(first, other.Public(), 0o600))
	broken("the signed head of entry 3: it is signed by key", "verify", may, "--trusted-keys", first)

	// A removed entry, and a whole other log that the orchestrator's keys have signed: only
	// the earlier export shows that.
	rest := k.entries
	k.entries = append(append([]auditchain.Entry{}, rest[:1]...), rest[2:]...)
	broken("entry 2 is missing before entry 3 of 2026-05-01 08:03:00 UTC", "verify")
	k.entries, k.heads = nil, nil
	k.write(2)
	k.entries[1].User = "dirk"
	k.entries[1].Hash = k.entries[1].Over(k.entries[0].Hash)
	k.heads = nil
	k.write(3)
	whole("is intact: 5 entries", "verify")
	broken("entry 3 of 2026-05-01 08:03:00 UTC, or one before it, was changed and the chain made again: it is the last one of", "verify", "--against", april)

	_, err = run("nonsense")
	require.ErrorContains(t, err, `unknown command "nonsense" for "audit-log". Its commands are: `)
}
