// Package joinexchange is how a laptop and an orchestrator that know the same short code
// get a common key which nobody else gets, over a connection that neither can trust yet:
// SPAKE2 over P-256 (Abdalla and Pointcheval, CT-RSA 2005; RFC 9382), by
// github.com/schollz/pake. Comes in: the code, each side's point, and the certificate of
// the connection as the side saw it. Goes out: a [Session], which confirms the key and
// seals what is sent with it.
//
// An exchange is one guess for whoever takes part in it: what was sent does not let a code
// be tried later, without another exchange. Somebody in between who ends the TLS
// connection and carries the messages on has another certificate than the orchestrator,
// which is in the transcript: no side confirms the other's key.
//
// What the library leaves to its callers is done here: points are checked before it reads
// them (it ends the process on a message without one), each instance is used once, and
// keys are derived from a transcript whose parts have lengths. Its two constant points
// have SHA-1 hashes of short texts as coordinates, so that nobody knows their logarithms;
// a test holds that.
package joinexchange

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"github.com/schollz/pake/v3"

	"linktrial/internal/joincode"
)

// PointBytes is the length of a point: uncompressed, as SEC 1 has it.
const PointBytes = 65

// IDBytes is the length of the number of an exchange, which the orchestrator draws.
const IDBytes = 16

const (
	curve       = "p256"
	form        = "linktrial join 1"
	joinerRole  = 0
	openerRole  = 1
	fieldBytes  = 32
	scalarBytes = 32
)

// Binding is what both sides put into the transcript besides their points.
type Binding struct {
	ID          [IDBytes]byte
	Certificate [sha256.Size]byte // hash of the orchestrator's certificate, DER, as the side saw or showed it
}

// ErrPoint is returned for what is no point of the curve.
var ErrPoint = errors.New("not a point of P-256, expected 65 bytes that begin with 4")

// errSealed does not say what is wrong: who has the key does not get it.
var errSealed = errors.New("the sealed part does not belong to this exchange")

// Joiner is the side of the laptop, for one exchange.
type Joiner struct {
	pake  *pake.Pake
	point []byte
}

// NewJoiner begins an exchange with a code.
func NewJoiner(code joincode.Code) (*Joiner, error) {
	p, err := instance(code, joinerRole)
	if err != nil {
		return nil, err
	}
	return &Joiner{pake: p, point: encode(p.Xᵤ, p.Xᵥ)}, nil
}

// Point is what the orchestrator is sent.
func (j *Joiner) Point() []byte { return j.point }

// Finish returns the session, from the orchestrator's point; [ErrPoint] where that is none.
// It works once.
func (j *Joiner) Finish(b Binding, point []byte) (*Session, error) {
	if j.pake == nil {
		return nil, errors.New("the exchange was finished already")
	}
	p := j.pake
	j.pake = nil
	x, y, err := decode(point)
	if err != nil {
		return nil, err
	}
	if err := p.Update((&pake.Pake{Role: openerRole, Yᵤ: x, Yᵥ: y}).Bytes()); err != nil {
		return nil, fmt.Errorf("key exchange: %w", err)
	}
	return newSession(p, b.transcript(j.point, point), joinerRole)
}

// Answer is the side of the orchestrator: it returns its point and the session for a
// laptop's point; [ErrPoint] where that is none.
func Answer(code joincode.Code, b Binding, point []byte) (own []byte, s *Session, err error) {
	x, y, err := decode(point)
	if err != nil {
		return nil, nil, err
	}
	p, err := instance(code, openerRole)
	if err != nil {
		return nil, nil, err
	}
	if err := p.Update((&pake.Pake{Role: joinerRole, Xᵤ: x, Xᵥ: y}).Bytes()); err != nil {
		return nil, nil, fmt.Errorf("key exchange: %w", err)
	}
	own = encode(p.Yᵤ, p.Yᵥ)
	s, err = newSession(p, b.transcript(point, own), openerRole)
	return own, s, err
}

func instance(code joincode.Code, role int) (*pake.Pake, error) {
	w, err := hkdf.Key(sha256.New, []byte(code.String()), nil, form+" scalar", scalarBytes)
	if err != nil {
		return nil, fmt.Errorf("key exchange: %w", err)
	}
	p, err := pake.InitCurve(w, role, curve)
	if err != nil {
		return nil, fmt.Errorf("key exchange: %w", err)
	}
	return p, nil
}

func encode(x, y *big.Int) []byte {
	b := make([]byte, PointBytes)
	b[0] = 4
	x.FillBytes(b[1 : 1+fieldBytes])
	y.FillBytes(b[1+fieldBytes:])
	return b
}

func decode(b []byte) (x, y *big.Int, err error) {
	if len(b) != PointBytes {
		return nil, nil, ErrPoint
	}
	if _, err := ecdh.P256().NewPublicKey(b); err != nil {
		return nil, nil, ErrPoint
	}
	return new(big.Int).SetBytes(b[1 : 1+fieldBytes]), new(big.Int).SetBytes(b[1+fieldBytes:]), nil
}

// transcript is all that both sides must have seen alike, each part with its length.
func (b *Binding) transcript(joiner, opener []byte) []byte {
	var out []byte
	for _, part := range [][]byte{[]byte(form), b.ID[:], b.Certificate[:], joiner, opener} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(part)))
		out = append(out, part...)
	}
	return out
}

// Session is what one side has after the exchange. Where the other one had another code,
// or saw another certificate, nothing that it confirms or seals is taken.
type Session struct {
	own, theirs side
}

// side has the keys of what one side sends.
type side struct {
	confirmation []byte // HMAC of the transcript
	seal         cipher.AEAD
}

var sideNames = [...]string{joinerRole: "joiner", openerRole: "opener"}

func newSession(p *pake.Pake, transcript []byte, role int) (*Session, error) {
	secret, err := p.SessionKey()
	if err != nil {
		return nil, fmt.Errorf("key exchange: %w", err)
	}
	salt := sha256.Sum256(transcript)
	var sides [2]side
	for r, name := range sideNames {
		mac, err1 := hkdf.Key(sha256.New, secret, salt[:], form+" confirmation "+name, sha256.Size)
		key, err2 := hkdf.Key(sha256.New, secret, salt[:], form+" seal "+name, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("key exchange: %w", err)
		}
		h := hmac.New(sha256.New, mac)
		h.Write(transcript)
		sides[r].confirmation = h.Sum(nil)
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("key exchange: %w", err)
		}
		if sides[r].seal, err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("key exchange: %w", err)
		}
	}
	return &Session{own: sides[role], theirs: sides[1-role]}, nil
}

// Confirmation shows the other side that this one has the key. The laptop sends its own
// first: an orchestrator that did would let a guess be tried without a wrong try.
func (s *Session) Confirmation() []byte { return s.own.confirmation }

// Confirmed reports whether the other side has the key, by its confirmation.
func (s *Session) Confirmed(confirmation []byte) bool {
	return hmac.Equal(confirmation, s.theirs.confirmation)
}

// Seal encrypts what is sent to the other side.
func (s *Session) Seal(plain []byte) []byte {
	nonce := make([]byte, s.own.seal.NonceSize())
	rand.Read(nonce) // never fails (crypto/rand, since Go 1.24)
	return s.own.seal.Seal(nonce, nonce, plain, s.own.confirmation)
}

// Open decrypts what the other side has sealed.
func (s *Session) Open(sealed []byte) ([]byte, error) {
	n := s.theirs.seal.NonceSize()
	if len(sealed) < n {
		return nil, errSealed
	}
	plain, err := s.theirs.seal.Open(nil, sealed[:n], sealed[n:], s.theirs.confirmation)
	if err != nil {
		return nil, errSealed
	}
	return plain, nil
}
