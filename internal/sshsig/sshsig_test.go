package sshsig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func keys(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"ed25519": ed, "ecdsa": ec}
}

func TestSignatures(t *testing.T) {
	content := []byte("what was measured\n")
	for name, key := range keys(t) {
		text, err := Sign(key, Journal, content)
		if err != nil {
			t.Fatal(err)
		}
		public, err := Verify(Journal, content, text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := ssh.NewPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(public.Marshal(), want.Marshal()) {
			t.Errorf("%s: signed by another key", name)
		}
		lines := strings.SplitAfter(text, "\n")
		broken := strings.Join(append([]string{lines[0], "AAAA" + lines[1][4:]}, lines[2:]...), "")
		for what, c := range map[string]struct{ namespace, content, text, want string }{
			"another content":   {Journal, "what was measured", text, "something else"},
			"another namespace": {Evidence, string(content), text, "namespace"},
			"nothing":           {Journal, string(content), "", "no SSH signature"},
			"another format":    {Journal, string(content), broken, "format"},
			"more behind it":    {Journal, string(content), text + "x", "no SSH signature"},
			"long":              {Journal, string(content), text + strings.Repeat(" ", MaxBytes), "longer"},
		} {
			if _, err := Verify(c.namespace, []byte(c.content), c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v, expected %q", name, what, err, c.want)
			}
		}
	}
}

// TestOpenSSH has OpenSSH's own program check a signature, and the other way round.
func TestOpenSSH(t *testing.T) {
	tool, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Fatal("ssh-keygen is not there: install openssh-client (make deps-test does)")
	}
	content := []byte("what was measured\n")
	for name, key := range keys(t) {
		dir := t.TempDir()
		text, err := Sign(key, Evidence, content)
		if err != nil {
			t.Fatal(err)
		}
		public, err := Verify(Evidence, content, text)
		if err != nil {
			t.Fatal(err)
		}
		allowed, sig := filepath.Join(dir, "allowed_signers"), filepath.Join(dir, "sig")
		if err := os.WriteFile(allowed, []byte(AllowedSigner("node-1", Evidence, public)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(sig, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		check := func(namespace string) error {
			cmd := exec.Command(tool, "-Y", "verify", "-f", allowed, "-I", "node-1", "-n", namespace, "-s", sig)
			cmd.Stdin = bytes.NewReader(content)
			out, err := cmd.CombinedOutput()
			t.Logf("%s, %s: %s", name, namespace, out)
			return err
		}
		if err := check(Evidence); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if check(Journal) == nil {
			t.Errorf("%s: valid in another namespace", name)
		}

		block, err := ssh.MarshalPrivateKey(key, "")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "key")
		var b bytes.Buffer
		if err := pem.Encode(&b, block); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(tool, "-Y", "sign", "-f", file, "-n", Evidence)
		cmd.Stdin = bytes.NewReader(content)
		theirs, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(Evidence, content, string(theirs)); err != nil {
			t.Errorf("%s: a signature of ssh-keygen: %v", name, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	text, err := Sign(key, Journal, []byte("a"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("a"), text)
	f.Fuzz(func(t *testing.T, content []byte, text string) {
		key, err := Verify(Journal, content, text)
		if (key == nil) != (err != nil) {
			t.Fatalf("%v, %v", key, err)
		}
	})
}
