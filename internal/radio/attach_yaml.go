package radio

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/yamldoc"
)

var (
	interfaceForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,15}$`) // IFNAMSIZ less its zero
	valueForm     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)
	unitForm      = regexp.MustCompile(`^[A-Za-z0-9/%°µ²-]{1,16}$`)
	envForm       = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
	hostForm      = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$`)
)

func attach(v yamldoc.Value) *Attach {
	if !v.Present() {
		return nil
	}
	m := v.Mapping("reach", "source", "interface", "mtu", "roles")
	a := &Attach{Reach: strings.TrimSpace(m.Field("reach").Required().String("")), Source: source(m.Field("source")), Interface: interfaceName(m.Field("interface"))}
	if f := m.Field("mtu"); f.Present() {
		a.MTUBytes = bounded(f, minMTU, maxMTU)
	}
	rm := m.Field("roles").Mapping(string(RoleClient), string(RoleRelay), string(RoleServer))
	for _, key := range rm.Keys() {
		if a.Roles == nil {
			a.Roles = map[Role]AttachRole{}
		}
		a.Roles[Role(key)] = attachRole(rm.Field(key))
	}
	return a
}

func attachRole(v yamldoc.Value) AttachRole {
	m := v.Mapping("interface", "address", "radio", "routes", "forwarding")
	r := AttachRole{Interface: interfaceName(m.Field("interface"))}
	if f := m.Field("address"); f.Present() {
		p, err := netip.ParsePrefix(f.String(""))
		if err != nil {
			f.Problem(`expected an address with its prefix such as "10.77.0.1/24", found %q`, f.String(""))
		} else {
			r.Address = p.String()
		}
	}
	r.Radio = address(m.Field("radio"))
	for _, e := range m.Field("routes").List() {
		em := e.Mapping("to", "via")
		f := em.Field("to").Required()
		p, err := netip.ParsePrefix(f.String(""))
		if f.Present() && (err != nil || p != p.Masked()) {
			f.Problem(`expected a prefix such as "10.77.0.0/24" without host bits, found %q`, f.String(""))
		}
		r.Routes = append(r.Routes, Route{To: p.String(), Via: address(em.Field("via"))})
	}
	if f := m.Field("forwarding"); f.Present() {
		b := f.Bool(false)
		r.Forwarding = &b
	}
	return r
}

func address(v yamldoc.Value) string {
	if !v.Present() {
		return ""
	}
	a, err := netip.ParseAddr(v.String(""))
	if err != nil {
		v.Problem("expected an IP address, found %q", v.String(""))
		return ""
	}
	return a.String()
}

func interfaceName(v yamldoc.Value) string {
	s := v.String("")
	if s != "" && !interfaceForm.MatchString(s) {
		v.Problem("expected the name of a network interface, at most 15 letters, digits, dots, hyphens and underscores, found %q", s)
		return ""
	}
	return s
}

// Bounds of telemetry: beyond them reading a source would disturb the node.
const (
	minPoll, maxPoll = 200 * time.Millisecond, time.Hour
	maxSources       = 16
	maxValues        = 64
)

func telemetry(v yamldoc.Value) []Telemetry {
	var out []Telemetry
	seen := map[string]bool{}
	list := v.List()
	if len(list) > maxSources {
		v.Problem("%d sources, expected at most %d", len(list), maxSources)
		list = list[:maxSources]
	}
	for _, e := range list {
		t := telemetrySource(e)
		if seen[t.Name] && t.Name != "" {
			e.Problem("source %q is given twice", t.Name)
		}
		seen[t.Name] = true
		out = append(out, t)
	}
	return out
}

// telemetryKeys are those of each kind beside what all have.
var telemetryKeys = map[TelemetryKind][]string{
	TelemetrySNMP: {"target", "snmp", "values"},
	TelemetryHTTP: {"target", "path", "tls", "values"},
	TelemetryGPSD: {"target"},
	TelemetryHost: nil,
}

func telemetrySource(v yamldoc.Value) Telemetry {
	m := v.Mapping("name", "kind", "on", "source", "poll", "interval", "target", "path", "tls", "snmp", "values")
	t := Telemetry{
		Name:   name(m.Field("name")),
		Kind:   TelemetryKind(m.Field("kind").Required().OneOf("", string(TelemetrySNMP), string(TelemetryHTTP), string(TelemetryGPSD), string(TelemetryHost))),
		On:     TelemetryOn(m.Field("on").OneOf(string(OnReal), string(OnReal), string(OnEmulated), string(OnBoth))),
		Source: source(m.Field("source")),
	}
	for key, kinds := range map[string]string{"target": "snmp, http and gpsd", "snmp": "snmp", "path": "http", "tls": "http", "values": "snmp and http"} {
		if f := m.Field(key); f.Present() && t.Kind != "" && !slices.Contains(telemetryKeys[t.Kind], key) {
			f.Problem("a source of kind %s has none; it belongs to %s", t.Kind, kinds)
		}
	}
	poll, interval := PollBetweenTrials, 10*time.Second
	if t.Kind == TelemetryGPSD || t.Kind == TelemetryHost { // they are not reached over the radio
		poll, interval = PollAlways, NodeInterval
	}
	t.Poll = TelemetryPoll(m.Field("poll").OneOf(string(poll), string(PollBetweenTrials), string(PollAlways)))
	every := m.Field("interval").Duration(interval)
	if every < minPoll || every > maxPoll {
		m.Field("interval").Problem("expected from %s to %s, found %s", minPoll, maxPoll, every)
	}
	t.IntervalNS = every.Nanoseconds()
	switch t.Kind {
	case TelemetrySNMP:
		t.Host, t.Port = target(m.Field("target").Required(), TargetRadio, 161)
		t.SNMP = snmp(m.Field("snmp"))
		t.Values = telemetryValues(m.Field("values"), "oid")
	case TelemetryHTTP:
		t.TLS = m.Field("tls").Bool(false)
		port := 80
		if t.TLS {
			port = 443
		}
		t.Host, t.Port = target(m.Field("target").Required(), TargetRadio, port)
		f := m.Field("path").Required()
		if t.Path = f.String(""); t.Path != "" && (t.Path[0] != '/' || strings.ContainsAny(t.Path, " #\x00\r\n\t")) {
			f.Problem(`expected a path such as "/status.json", found %q`, t.Path)
		}
		t.Values = telemetryValues(m.Field("values"), "pointer")
	case TelemetryGPSD:
		t.Host, t.Port = target(m.Field("target"), "127.0.0.1", GPSDPort)
	}
	return t
}

// target reads "host", "host:port" or "[v6]:port".
func target(v yamldoc.Value, host string, port int) (string, int) {
	s := v.String(host)
	if ap, err := netip.ParseAddrPort(s); err == nil && ap.Port() > 0 {
		return ap.Addr().String(), int(ap.Port())
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return a.String(), port
	}
	name, digits, has := strings.Cut(s, ":")
	if has {
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || n == 0 {
			v.Problem(`expected a host such as "radio" or "192.0.2.1:161", found %q`, s)
			return host, port
		}
		port = int(n)
	}
	if !hostForm.MatchString(name) {
		v.Problem(`expected a host such as "radio" or "192.0.2.1:161", found %q`, s)
		return host, port
	}
	return name, port
}

// What RFC 3414 and its successors (RFC 3826, RFC 7860) name, as the SNMP library does.
var (
	snmpAuths     = []string{"none", "md5", "sha", "sha224", "sha256", "sha384", "sha512"}
	snmpPrivacies = []string{"none", "des", "aes", "aes192", "aes256"}
)

func snmp(v yamldoc.Value) *SNMP {
	m := v.Mapping("version", "community", "community_env", "user", "auth", "auth_env", "privacy", "privacy_env")
	none := func(s string) string {
		if s == "none" {
			return ""
		}
		return s
	}
	s := &SNMP{
		Version: m.Field("version").OneOf("2c", "2c", "3"), Community: m.Field("community").String(""), CommunityEnv: env(m.Field("community_env")),
		User: m.Field("user").String(""), Auth: none(m.Field("auth").OneOf("none", snmpAuths...)), AuthEnv: env(m.Field("auth_env")),
		Privacy: none(m.Field("privacy").OneOf("none", snmpPrivacies...)), PrivacyEnv: env(m.Field("privacy_env")),
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

// env is the name of an environment variable.
func env(v yamldoc.Value) string {
	s := v.String("")
	if s != "" && !envForm.MatchString(s) {
		v.Problem("expected the name of an environment variable of the agent, in capitals, found %q: secrets are no part of a profile", s)
		return ""
	}
	return s
}

func telemetryValues(v yamldoc.Value, where string) []TelemetryValue {
	var out []TelemetryValue
	seen := map[string]bool{}
	list := v.Required().List()
	if v.IsList() && (len(list) == 0 || len(list) > maxValues) {
		v.Problem("%d values, expected 1 to %d", len(list), maxValues)
		list = nil
	}
	for _, e := range list {
		m := e.Mapping("name", where, "unit", "scale", "counter")
		x := TelemetryValue{Name: m.Field("name").Required().String(""), Scale: m.Field("scale").Float(1, -1e18, 1e18), Counter: m.Field("counter").Bool(false)}
		if m.Field("name").Present() && !valueForm.MatchString(x.Name) {
			m.Field("name").Problem("%q, expected lower-case letters, digits and underscores, at most 48", x.Name)
		}
		if seen[x.Name] && x.Name != "" {
			e.Problem("value %q is given twice", x.Name)
		}
		seen[x.Name] = true
		if f := m.Field("unit"); f.Present() {
			if x.Unit = f.String(""); !unitForm.MatchString(x.Unit) {
				f.Problem(`expected a unit such as "dB" or "kbit/s", found %q`, x.Unit)
			}
		}
		if f := m.Field("scale"); f.Present() && x.Scale == 0 {
			f.Problem("a scale of 0 makes every figure 0")
		}
		f := m.Field(where).Required()
		switch s := f.String(""); {
		case !f.Present():
		case where == "oid":
			x.OID = oid(f, s)
		default:
			x.Pointer = s
			if !validPointer(s) {
				f.Problem(`expected a JSON pointer (RFC 6901) such as "/radio/snr", found %q`, s)
			}
		}
		out = append(out, x)
	}
	return out
}

// oid reads a numeric object identifier: its first arc is 0 to 2, the second
// below 40 there where the encoding of X.690, section 8.19.4, joins them.
func oid(v yamldoc.Value, s string) string {
	s = strings.TrimPrefix(s, ".")
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

// validPointer reports whether a text is a JSON pointer, RFC 6901, section 3.
func validPointer(s string) bool {
	if s != "" && s[0] != '/' || len(s) > 256 {
		return false
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return true
}
