package signing

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"linktrial/internal/signature"
)

func trusts(t *testing.T, dir string) signature.Keys {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, PublicFile))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := signature.ParseKeys(PublicFile, b)
	if err != nil {
		t.Fatal(err)
	}
	return signature.NewKeys(keys...)
}

func TestKeyringLasts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "signing")
	k, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(dir, ringFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", st.Mode(), err)
	}
	sheet := []byte("sheet")
	before := k.Sign("r", sheet)
	if err := trusts(t, dir).VerifySheet("r", sheet, before); err != nil {
		t.Errorf("the published key: %v", err)
	}
	first := signature.NewKeys(k.Keys()[0].Key) // of a node that was told of the first key alone
	for range 2 {
		if err := k.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	after := again.Sign("r", sheet)
	if after.KeyID == before.KeyID || len(again.Keys()) != 3 {
		t.Errorf("after two rotations key %s signs, of %d", after.KeyID, len(again.Keys()))
	}
	if err := first.VerifySheet("r", sheet, after); err == nil {
		t.Error("a node trusts a key that nobody vouched for to it")
	}
	first.Extend(again.Keys())
	for name, s := range map[string]signature.Signature{"before": before, "after": after} {
		if err := first.VerifySheet("r", sheet, s); err != nil {
			t.Errorf("signed %s the rotations: %v", name, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, ringFile)); err != nil || bytes.Contains(b, []byte(first.IDs())) {
		t.Errorf("%v", err)
	}
}

// Two orchestrators that start at once on one folder have one key.
func TestKeyringIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			k, err := Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = k.Keys()[0].Key.ID()
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("keys %v", ids)
		}
	}
}

func TestKeyringIsRefused(t *testing.T) {
	dir := t.TempDir()
	k, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Rotate(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ringFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Ephemeral()
	if err != nil {
		t.Fatal(err)
	}
	own := k.Keys()
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"cut":         {string(good[:len(good)/2]), "JSON"},
		"format":      {strings.Replace(string(good), `"format": 1`, `"format": 2`, 1), "format 2"},
		"seed":        {strings.Replace(string(good), `"private_seed": "`, `"private_seed": "AAAA`, 1), "35 bytes"},
		"key changed": {strings.Replace(string(good), own[1].Key.String(), other.Keys()[0].Key.String(), 1), "not endorsed"},
		"first gone":  {strings.Replace(string(good), own[0].Key.String(), other.Keys()[0].Key.String(), 1), "not endorsed"},
		"empty":       {"{}", "format 0"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, expected an error with the path and %q", name, err, c.want)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "open to others") {
		t.Errorf("a key that others can read: %v", err)
	}
}

func FuzzParseRing(f *testing.F) {
	k, err := Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	if err := k.Rotate(); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(k.dir, ringFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"format":1,"private_seed":"","keys":[{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := parseRing(b)
		if err != nil {
			return
		}
		// What is taken can sign, and who trusts its first key follows to its last.
		keys := signature.NewKeys(k.keys[0].Key)
		keys.Extend(k.keys)
		if err := keys.VerifySheet("r", []byte("s"), k.Sign("r", []byte("s"))); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
	})
}
