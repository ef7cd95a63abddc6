package radio

import (
	"net/netip"
	"regexp"
	"strings"

	"linktrial/internal/yamldoc"
)

var interfaceForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,15}$`) // IFNAMSIZ less its zero

func attach(v yamldoc.Value) *Attach {
	if !v.Present() {
		return nil
	}
	m := attachKeys.Read(v)
	a := &Attach{Reach: strings.TrimSpace(m.Field("reach").Required().String("")), Source: source(m.Field("source")), Interface: interfaceName(m.Field("interface"))}
	if m.Field("mtu").Present() {
		a.MTUBytes = size(m, "mtu")
	}
	rm := rolesKeys.Read(m.Field("roles"))
	for _, key := range rm.Keys() {
		if a.Roles == nil {
			a.Roles = map[Role]AttachRole{}
		}
		a.Roles[Role(key)] = attachRole(rm.Field(key))
	}
	return a
}

func attachRole(v yamldoc.Value) AttachRole {
	m := attachRoleKeys.Read(v)
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
		em := routeKeys.Read(e)
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
