package telemetrysource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gosnmp/gosnmp"

	"linktrial/internal/yamldoc"
)

// snmpTry is how long one request waits for its answer; two are sent before the
// limit of a reading is up.
const snmpTry = 900 * time.Millisecond

// KindSNMP is SNMPv2c (RFC 3416) or v3 (RFC 3414), GET alone.
const KindSNMP Kind = "snmp"

var snmpKind = Definition{
	Kind: KindSNMP, Title: "SNMP", About: AboutRadio,
	Help: "objects by SNMP v2c or v3, GET alone",
	Keys: []Key{
		{"target", "`radio`, a host, or host:port"},
		{"snmp", "`version: 2c` with `community` (public) or `community_env`; `version: 3` with `user`, `auth` (md5, sha, sha224, sha256, sha384, sha512) and `auth_env`, `privacy` (des, aes, aes192, aes256) and `privacy_env`. Names that end in `_env` are variables of the agent's environment; the node's technician lists them in `LINKTRIAL_RADIO_SECRETS` there"},
		{"values", "`{name, oid}`, with `unit`, `scale` and `counter`"},
	},
	Place: oid, PlaceKey: "oid", PlaceTitle: "OID",
	Poll: PollBetweenTrials, Interval: radioInterval, Port: 161,
	Remedy:   "switch SNMP on in the radio, and see that its address, version and community are those of the profile (attach, telemetry); or take the source out of the profile",
	settings: func() Settings { return &SNMP{} },
}

// SNMP is how a source's agent is asked.
type SNMP struct {
	Access *SNMPAccess `json:"snmp,omitempty"`
}

// SNMPAccess is the version, and the names of the credentials, that a source is read with.
// Secrets are not part of a profile: the fields that end in Env name variables of the
// Linktrial agent's environment that hold them.
type SNMPAccess struct {
	Version      string `json:"version"`                 // "2c" or "3"
	Community    string `json:"community,omitempty"`     // of 2c, "public" unless stated
	CommunityEnv string `json:"community_env,omitempty"` // of 2c, instead
	User         string `json:"user,omitempty"`          // of 3
	Auth         string `json:"auth,omitempty"`          // of 3: sha256 and its like; empty: none
	AuthEnv      string `json:"auth_env,omitempty"`
	Privacy      string `json:"privacy,omitempty"` // of 3: aes and its like; empty: none
	PrivacyEnv   string `json:"privacy_env,omitempty"`
}

// What RFC 3414 and its successors (RFC 3826, RFC 7860) name, as the SNMP library does.
var (
	snmpAuths = map[string]gosnmp.SnmpV3AuthProtocol{"md5": gosnmp.MD5, "sha": gosnmp.SHA, "sha224": gosnmp.SHA224, "sha256": gosnmp.SHA256,
		"sha384": gosnmp.SHA384, "sha512": gosnmp.SHA512}
	snmpPrivacies = map[string]gosnmp.SnmpV3PrivProtocol{"des": gosnmp.DES, "aes": gosnmp.AES, "aes192": gosnmp.AES192, "aes256": gosnmp.AES256}
)

func (a *SNMP) parse(m yamldoc.Mapping, _ *Source) { a.Access = snmpAccess(m.Field("snmp")) }

// wordsOf is what a profile may say where one of the library's is meant, or none.
func wordsOf[P any](known map[string]P) []string {
	return append([]string{"none"}, slices.Sorted(maps.Keys(known))...)
}

func snmpAccess(v yamldoc.Value) *SNMPAccess {
	m := v.Mapping("version", "community", "community_env", "user", "auth", "auth_env", "privacy", "privacy_env")
	none := func(s string) string {
		if s == "none" {
			return ""
		}
		return s
	}
	s := &SNMPAccess{
		Version: m.Field("version").OneOf("2c", "2c", "3"), Community: m.Field("community").String(""), CommunityEnv: env(m.Field("community_env")),
		User: m.Field("user").String(""), Auth: none(m.Field("auth").OneOf("none", wordsOf(snmpAuths)...)), AuthEnv: env(m.Field("auth_env")),
		Privacy: none(m.Field("privacy").OneOf("none", wordsOf(snmpPrivacies)...)), PrivacyEnv: env(m.Field("privacy_env")),
	}
	of2, of3 := []string{"community", "community_env"}, []string{"user", "auth", "auth_env", "privacy", "privacy_env"}
	wrong := of3
	if s.Version == "3" {
		wrong = of2
		m.Field("user").Required()
		if s.Auth != "" {
			m.Field("auth_env").Required()
		}
		if s.Privacy != "" {
			m.Field("privacy_env").Required()
		}
		if s.Privacy != "" && s.Auth == "" {
			m.Field("privacy").Problem("privacy without authentication: RFC 3414, section 1.4.2, has no such level")
		}
	} else if s.Community == "" && s.CommunityEnv == "" {
		s.Community = "public"
	}
	for _, key := range wrong {
		if f := m.Field(key); f.Present() {
			f.Problem("version %s has none", s.Version)
		}
	}
	return s
}

func (a *SNMP) way(s *Source) string {
	title := snmpKind.Title
	if a.Access != nil {
		title += " " + strings.Replace(a.Access.Version, "3", "v3", 1)
	}
	return snmpKind.at(s, title)
}

// oid reads a numeric object identifier: its first arc is 0 to 2, the second
// below 40 there where the encoding of X.690, section 8.19.4, joins them.
func oid(v yamldoc.Value) string {
	s := strings.TrimPrefix(v.String(""), ".")
	arcs := strings.Split(s, ".")
	ok := len(arcs) >= 2 && len(arcs) <= 128 // RFC 2578, section 7.1.3
	for i, a := range arcs {
		n, err := strconv.ParseUint(a, 10, 32)
		ok = ok && err == nil && strconv.FormatUint(n, 10) == a && (i > 0 || n <= 2) && (i != 1 || n < 40)
	}
	if !ok {
		v.Problem(`expected a numeric object identifier such as "1.3.6.1.2.1.2.2.1.10.1", found %q`, s)
	}
	return s
}

// dialSNMP makes the session of one reading.
func dialSNMP(ctx context.Context, s *SNMPAccess, host string, port int, secret func(string) (string, error)) (*gosnmp.GoSNMP, error) {
	g := &gosnmp.GoSNMP{Context: ctx, Target: host, Port: uint16(port), Transport: "udp", Version: gosnmp.Version2c, Community: s.Community,
		Timeout: snmpTry, Retries: 1, MaxOids: gosnmp.MaxOids}
	var err error
	if s.Version != "3" {
		if s.CommunityEnv != "" {
			g.Community, err = secret(s.CommunityEnv)
		}
		return g, err
	}
	g.Version, g.SecurityModel, g.MsgFlags = gosnmp.Version3, gosnmp.UserSecurityModel, gosnmp.NoAuthNoPriv
	u := &gosnmp.UsmSecurityParameters{UserName: s.User, AuthenticationProtocol: gosnmp.NoAuth, PrivacyProtocol: gosnmp.NoPriv}
	if s.Auth != "" {
		g.MsgFlags, u.AuthenticationProtocol = gosnmp.AuthNoPriv, snmpAuths[s.Auth]
		if u.AuthenticationPassphrase, err = secret(s.AuthEnv); err != nil {
			return nil, err
		}
	}
	if s.Privacy != "" {
		g.MsgFlags, u.PrivacyProtocol = gosnmp.AuthPriv, snmpPrivacies[s.Privacy]
		if u.PrivacyPassphrase, err = secret(s.PrivacyEnv); err != nil {
			return nil, err
		}
	}
	g.SecurityParameters = u
	return g, nil
}

func (a *SNMP) read(ctx context.Context, t *Source, host string, n *Node) ([]Reading, error) {
	if a.Access == nil {
		return nil, errors.New("the source says nothing of its SNMP version")
	}
	g, err := dialSNMP(ctx, a.Access, host, t.Port, n.secret)
	if err != nil {
		return nil, err
	}
	place := hostPort(host, t.Port)
	if err := g.Connect(); err != nil {
		return nil, describeError("SNMP", place, err)
	}
	defer func() { _ = g.Conn.Close() }() // datagrams: nothing is lost
	names := make([]string, len(t.Values))
	for i, v := range t.Values {
		names[i] = v.Place
	}
	res, err := g.Get(names)
	if err != nil {
		// The library reports a deadline with a text of its own.
		if strings.Contains(err.Error(), "timeout") || ctx.Err() != nil {
			err = context.DeadlineExceeded
		}
		return nil, describeError("SNMP", place, err)
	}
	if res.Error != gosnmp.NoError {
		return nil, fmt.Errorf("SNMP at %s answers %s", place, res.Error)
	}
	if len(res.Variables) != len(names) {
		return nil, fmt.Errorf("SNMP at %s answers %d of %d values", place, len(res.Variables), len(names))
	}
	out := make([]Reading, len(names))
	for i, v := range t.Values {
		x, err := snmpNumber(&res.Variables[i])
		if err != nil {
			return nil, fmt.Errorf("%s (%s) at %s: %w", v.Name, v.Place, place, err)
		}
		if out[i], err = t.Values[i].reading(x); err != nil {
			return nil, fmt.Errorf("%s (%s) at %s: %w", v.Name, v.Place, place, err)
		}
	}
	return out, nil
}

// snmpNumber is the number that an object holds; text that reads as one is one:
// radios report decibels that way.
func snmpNumber(v *gosnmp.SnmpPDU) (float64, error) {
	switch v.Type {
	case gosnmp.NoSuchObject, gosnmp.NoSuchInstance, gosnmp.EndOfMibView:
		return 0, errors.New("the radio has no such object")
	case gosnmp.OctetString:
		b, _ := v.Value.([]byte)
		return numberIn(string(b))
	case gosnmp.OpaqueFloat:
		f, _ := v.Value.(float32)
		return float64(f), nil
	case gosnmp.OpaqueDouble:
		f, _ := v.Value.(float64)
		return f, nil
	case gosnmp.Integer, gosnmp.Counter32, gosnmp.Gauge32, gosnmp.TimeTicks, gosnmp.Counter64, gosnmp.Uinteger32:
		f, _ := gosnmp.ToBigInt(v.Value).Float64()
		return f, nil
	}
	return 0, fmt.Errorf("expected a number, found an object of type %s", v.Type)
}
