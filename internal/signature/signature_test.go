package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"reflect"
	"strings"
	"testing"
)

// private is a key that is the same in every run of the tests.
func private(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func TestVerifySheet(t *testing.T) {
	own, other := private("own"), private("other")
	keys := NewKeys(PublicOf(own))
	sheet := []byte(`{"format":1}`)
	good := SignSheet(own, "run-1", sheet)
	if err := keys.VerifySheet("run-1", sheet, good); err != nil {
		t.Fatalf("a good signature: %v", err)
	}
	changed := bytes.Clone(sheet)
	changed[3] ^= 1
	flipped := Signature{good.KeyID, bytes.Clone(good.Bytes)}
	flipped.Bytes[10] ^= 1
	// The endorsement of a key is not valid as the signature of a sheet of the same bytes.
	asSheet := Endorse(own, PublicOf(other))
	cross := Signature{good.KeyID, asSheet.Endorsement}
	otherKey := PublicOf(other)
	for name, c := range map[string]struct {
		run   string
		sheet []byte
		s     Signature
		want  string
	}{
		"unsigned":          {"run-1", sheet, Signature{}, "not signed"},
		"changed":           {"run-1", changed, good, "was changed"},
		"longer":            {"run-1", append(bytes.Clone(sheet), '\n'), good, "was changed"},
		"of another run":    {"run-2", sheet, good, "another run"},
		"run and sheet cut": {"run-", append([]byte("1"), sheet...), good, "another run"},
		"flipped":           {"run-1", sheet, flipped, "does not match"},
		"other key":         {"run-1", sheet, SignSheet(other, "run-1", sheet), "does not trust"},
		"other key's name":  {"run-1", sheet, Signature{good.KeyID, SignSheet(other, "run-1", sheet).Bytes}, "does not match"},
		"short":             {"run-1", sheet, Signature{good.KeyID, good.Bytes[:63]}, "63 bytes"},
		"without key":       {"run-1", sheet, Signature{"", good.Bytes}, "does not trust"},
		"an endorsement":    {"", otherKey[:], cross, "does not match"},
	} {
		if err := keys.VerifySheet(c.run, c.sheet, c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected an error with %q", name, err, c.want)
		}
	}
}

func TestExtendByEndorsements(t *testing.T) {
	a, b, c, x := private("a"), private("b"), private("c"), private("x")
	ab, bc, xc := Endorse(a, PublicOf(b)), Endorse(b, PublicOf(c)), Endorse(x, PublicOf(c))
	forged := Endorsed{Key: PublicOf(x), By: PublicOf(a).ID(), Endorsement: Endorse(x, PublicOf(x)).Endorsement}
	// What is signed as a sheet endorses nothing.
	px := PublicOf(x)
	asSheet := Endorsed{Key: px, By: PublicOf(a).ID(), Endorsement: SignSheet(a, "", px[:]).Bytes}
	for name, test := range map[string]struct {
		list []Endorsed
		want []ed25519.PrivateKey
	}{
		"chain":                 {[]Endorsed{ab, bc}, []ed25519.PrivateKey{a, b, c}},
		"chain, last first":     {[]Endorsed{bc, ab}, []ed25519.PrivateKey{a, b, c}},
		"a link is missing":     {[]Endorsed{bc}, []ed25519.PrivateKey{a}},
		"by a stranger":         {[]Endorsed{xc, {Key: PublicOf(x)}}, []ed25519.PrivateKey{a}},
		"in another's name":     {[]Endorsed{forged}, []ed25519.PrivateKey{a}},
		"a sheet as an endorse": {[]Endorsed{asSheet}, []ed25519.PrivateKey{a}},
	} {
		keys := NewKeys(PublicOf(a))
		taken := keys.Extend(test.list)
		want := Keys{}
		for _, k := range test.want {
			want[PublicOf(k).ID()] = PublicOf(k)
		}
		if !reflect.DeepEqual(keys, want) || len(taken) != len(want)-1 {
			t.Errorf("%s: trusts %s, expected %s", name, keys.IDs(), want.IDs())
		}
	}
}

func TestKeyFilesRefused(t *testing.T) {
	k := PublicOf(private("a")).String()
	e := strings.TrimSpace(string(FormatEndorsed([]Endorsed{Endorse(private("a"), PublicOf(private("b")))})))
	for text, want := range map[string]string{
		"":                 "no key",
		"# nothing\n":      "no key",
		k + "\nnonsense\n": "keys:2: ",
		k + " " + k:        "2 words",
		strings.ToUpper(k): "expected a public key",
		"ed25519:AAAA":     "3 bytes",
		k[:len(k)-1]:       "not base64",
		// 32 bytes and two bits that belong to none.
		"ed25519:" + strings.Repeat("A", 42) + "B=": "not base64",
	} {
		_, err := ParseKeys("keys", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected an error with %q", text, err, want)
		}
	}
	for _, text := range []string{"x", k, e + " more", strings.Replace(e, " by ", " of ", 1), strings.Replace(e, "by ", "by z", 1), e[:len(e)-4]} {
		if _, err := ParseEndorsed("endorsed", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "endorsed:1: ") {
			t.Errorf("%q: %v, expected an error with the line", text, err)
		}
	}
	s := SignSheet(private("a"), "r", nil).String()
	for _, text := range []string{"", " ", s + "\n\n", s + " x", strings.Replace(s, " ", "\t", 1), s[1:], strings.ToUpper(s[:16]) + s[16:], s[:len(s)-4]} {
		if _, err := ParseSignature(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add(FormatKeys("two", PublicOf(private("a")), PublicOf(private("b"))))
	f.Add([]byte("ed25519:AAAA # x\n\n#\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := ParseKeys("f", b)
		if err != nil {
			return
		}
		again, err := ParseKeys("f", FormatKeys("", keys...))
		if err != nil || !reflect.DeepEqual(keys, again) {
			t.Fatalf("%q: written and read: %v, %v", b, again, err)
		}
	})
}

func FuzzParseEndorsed(f *testing.F) {
	f.Add(FormatEndorsed([]Endorsed{Endorse(private("a"), PublicOf(private("b"))), Endorse(private("b"), PublicOf(private("c")))}))
	f.Add([]byte("ed25519:AAAA by 00 AAAA\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := ParseEndorsed("f", b)
		if err != nil {
			return
		}
		again, err := ParseEndorsed("f", FormatEndorsed(list))
		if err != nil || !reflect.DeepEqual(list, again) {
			t.Fatalf("%q: written and read: %v, %v", b, again, err)
		}
		// Whatever the file says, only what key a endorses is trusted.
		keys := NewKeys(PublicOf(private("a")))
		for _, e := range keys.Extend(list) {
			if _, ok := keys[e.By]; !ok {
				t.Fatalf("%q: a key is trusted that no trusted one endorses", b)
			}
		}
	})
}

func FuzzParseSignature(f *testing.F) {
	f.Add(SignSheet(private("a"), "run", []byte("sheet")).String() + "\n")
	f.Add("0123456789abcdef AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSignature(text)
		if err != nil {
			return
		}
		if s.String() != strings.TrimSuffix(text, "\n") {
			t.Fatalf("%q: written again as %q", text, s)
		}
	})
}
