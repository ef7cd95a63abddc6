package discovery

import (
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// unicast is the bit of a question's class by which it wants an answer for itself
	// alone (RFC 6762, 5.4).
	unicast = 1 << 15
	// life is for how long an answer may be kept, in seconds: what asks from another port
	// than 5353 may keep none longer (RFC 6762, 6.7).
	life = 10
	// maxInstance is the longest name of an instance, in bytes.
	maxInstance = 40
	// maxText is the longest value in the text of an answer, in bytes.
	maxText = 64
	// maxRecords is how many records of an answer are read.
	maxRecords = 40
)

var service = dnsmessage.MustNewName(serviceName)

// question is the packet that asks for orchestrators.
func question() ([]byte, error) {
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: service, Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET | unicast}}}
	return m.Pack()
}

// readQuestion reports whether a packet asks for orchestrators, and returns its number.
func readQuestion(b []byte) (id uint16, ok bool) {
	var p dnsmessage.Parser
	h, err := p.Start(b)
	if err != nil || h.Response || h.OpCode != 0 || h.RCode != 0 {
		return 0, false
	}
	for range maxRecords {
		q, err := p.Question()
		if err != nil {
			return 0, false
		}
		if strings.EqualFold(q.Name.String(), serviceName) && (q.Type == dnsmessage.TypePTR || q.Type == dnsmessage.TypeALL) {
			return h.ID, true
		}
	}
	return 0, false
}

// answer is the packet that answers a question with a number on a link with addresses.
// One that asked from port 5353 gets no question back (RFC 6762, 6).
func (s *Service) answer(id uint16, addresses []netip.Addr, legacy bool) ([]byte, error) {
	label := label(s.Instance)
	instance, err := dnsmessage.NewName(label + "." + serviceName)
	if err != nil {
		return nil, err
	}
	host, err := dnsmessage.NewName(label + ".local.")
	if err != nil {
		return nil, err
	}
	head := func(n dnsmessage.Name, t dnsmessage.Type) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: n, Type: t, Class: dnsmessage.ClassINET, TTL: life}
	}
	m := dnsmessage.Message{
		Header:  dnsmessage.Header{Response: true, Authoritative: true},
		Answers: []dnsmessage.Resource{{Header: head(service, dnsmessage.TypePTR), Body: &dnsmessage.PTRResource{PTR: instance}}},
		Additionals: []dnsmessage.Resource{
			{Header: head(instance, dnsmessage.TypeSRV), Body: &dnsmessage.SRVResource{Port: uint16(s.Port), Target: host}},
			{Header: head(instance, dnsmessage.TypeTXT), Body: &dnsmessage.TXTResource{TXT: []string{"version=" + clean(s.Version), "id=" + clean(s.ID)}}},
		},
	}
	if legacy {
		m.ID = id
		m.Questions = []dnsmessage.Question{{Name: service, Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET}}
	}
	for _, a := range addresses {
		if a.Is4() {
			m.Additionals = append(m.Additionals, dnsmessage.Resource{Header: head(host, dnsmessage.TypeA), Body: &dnsmessage.AResource{A: a.As4()}})
			continue
		}
		m.Additionals = append(m.Additionals, dnsmessage.Resource{Header: head(host, dnsmessage.TypeAAAA), Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
	}
	return m.Pack()
}

// label is a name as a label of DNS: dots would part it.
func label(name string) string {
	name, _, _ = strings.Cut(name, ".")
	name = clean(name)
	name = name[:min(len(name), maxInstance)]
	if name == "" {
		return "orchestrator"
	}
	return name
}

// clean has of a text the characters that a terminal and DNS take without harm.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-._+~", r):
			return r
		}
		return '-'
	}, s)
	return s[:min(len(s), maxText)]
}

// readAnswer reads an orchestrator out of a packet; ok: it has a port and an address.
func readAnswer(b []byte) (f Found, ok bool) {
	var p dnsmessage.Parser
	if h, err := p.Start(b); err != nil || !h.Response || p.SkipAllQuestions() != nil {
		return Found{}, false
	}
	// Records stand in either part: some programs have all of them in the first one.
	n := 0
	for _, next := range []func() (dnsmessage.Resource, error){p.Answer, p.Additional} {
		for n < maxRecords {
			r, err := next()
			if err != nil {
				break
			}
			n++
			f.take(r)
		}
		if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
			break
		}
	}
	return f, f.Instance != "" && f.Port != 0 && len(f.Addresses) > 0
}

// take takes what a record says.
func (f *Found) take(r dnsmessage.Resource) {
	name := r.Header.Name.String()
	of, isService := strings.CutSuffix(strings.ToLower(name), "."+serviceName)
	switch body := r.Body.(type) {
	case *dnsmessage.SRVResource:
		if isService {
			f.Instance, f.Port = clean(name[:len(of)]), int(body.Port)
		}
	case *dnsmessage.TXTResource:
		for _, t := range body.TXT {
			key, value, _ := strings.Cut(t, "=")
			switch {
			case isService && key == "version":
				f.Version = clean(value)
			case isService && key == "id":
				f.ID = clean(value)
			}
		}
	case *dnsmessage.AResource:
		f.address(netip.AddrFrom4(body.A))
	case *dnsmessage.AAAAResource:
		f.address(netip.AddrFrom16(body.AAAA))
	}
}

func (f *Found) address(a netip.Addr) {
	usable := a.IsGlobalUnicast() || a.IsLinkLocalUnicast()
	if usable && !a.Is4In6() && !slices.Contains(f.Addresses, a) {
		f.Addresses = append(f.Addresses, a)
	}
}
