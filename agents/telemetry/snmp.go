package telemetry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gosnmp/gosnmp"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
)

// snmpTry is how long one request waits for its answer; two are sent before the
// limit of a reading is up.
const snmpTry = 900 * time.Millisecond

var (
	snmpAuths = map[string]gosnmp.SnmpV3AuthProtocol{"md5": gosnmp.MD5, "sha": gosnmp.SHA, "sha224": gosnmp.SHA224, "sha256": gosnmp.SHA256,
		"sha384": gosnmp.SHA384, "sha512": gosnmp.SHA512}
	snmpPrivacies = map[string]gosnmp.SnmpV3PrivProtocol{"des": gosnmp.DES, "aes": gosnmp.AES, "aes192": gosnmp.AES192, "aes256": gosnmp.AES256}
)

// dialer makes the session of one reading.
func dialSNMP(ctx context.Context, s *radio.SNMP, host string, port int, env func(string) string) (*gosnmp.GoSNMP, error) {
	g := &gosnmp.GoSNMP{Context: ctx, Target: host, Port: uint16(port), Transport: "udp", Version: gosnmp.Version2c, Community: s.Community,
		Timeout: snmpTry, Retries: 1, MaxOids: gosnmp.MaxOids}
	secret := func(name string) (string, error) {
		v := env(name)
		if v == "" {
			return "", fmt.Errorf("the radio profile names %s as a secret of the radio's SNMP, and the agent's environment has none of that name that %s lists: the node's technician sets both", name, SecretsVariable)
		}
		return v, nil
	}
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

func readSNMP(ctx context.Context, t *radio.Telemetry, host string, env func(string) string) ([]journal.Reading, error) {
	if t.SNMP == nil {
		return nil, errors.New("the source says nothing of its SNMP version")
	}
	g, err := dialSNMP(ctx, t.SNMP, host, t.Port, env)
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
		names[i] = v.OID
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
		return nil, fmt.Errorf("SNMP at %s answers %d of %d figures", place, len(res.Variables), len(names))
	}
	out := make([]journal.Reading, len(names))
	for i, v := range t.Values {
		x, err := snmpNumber(&res.Variables[i])
		if err != nil {
			return nil, fmt.Errorf("%s (%s) at %s: %w", v.Name, v.OID, place, err)
		}
		if out[i], err = reading(&t.Values[i], x*v.Scale); err != nil {
			return nil, fmt.Errorf("%s (%s) at %s: %w", v.Name, v.OID, place, err)
		}
	}
	return out, nil
}

// reading is a figure as the journal has it. JSON, which the journal is, has no
// infinities and no NaN, which radios report as text.
func reading(v *radio.TelemetryValue, x float64) (journal.Reading, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return journal.Reading{}, fmt.Errorf("expected a number, found %v", x)
	}
	return journal.Reading{Name: v.Name, Value: x, Unit: v.Unit, Counter: v.Counter}, nil
}

// snmpNumber is the number that an object holds; text that reads as one is one:
// radios report decibels that way.
func snmpNumber(v *gosnmp.SnmpPDU) (float64, error) {
	switch v.Type {
	case gosnmp.NoSuchObject, gosnmp.NoSuchInstance, gosnmp.EndOfMibView:
		return 0, errors.New("the radio has no such object")
	case gosnmp.OctetString:
		b, _ := v.Value.([]byte)
		x, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
		if err != nil {
			return 0, fmt.Errorf("expected a number, found the text %q", string(b[:min(len(b), 40)]))
		}
		return x, nil
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
