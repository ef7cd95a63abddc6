package document

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// work is what a report can refer to by a key.
type work struct {
	key  string // as texts have it
	text string // authors, title, year
}

// works are all there are, in the order of the list: the papers whose experiments plans repeat, then
// methods, RFCs and recommendations by their numbers.
var works = []work{
	{"breedy-2015", "M. Breedy, P. Budulas, A. Morelli, N. Suri: Transport Protocols Revisited. 2015"},
	{"dantas-2011", "M. B. T. Dantas, J. F. Galdino, E. L. Pinto: TCP Performance Improvement over HF Channels by Lower-Layer Parameter Tuning. 2011"},
	{"decola-2006", "T. de Cola, M. Marchese: Study and performance analysis of transport layer mechanisms applied in military radio environment. 2006"},
	{"lttcp-2006", "V. Subramanian, S. Kalyanaraman, K. K. Ramakrishnan: An End-to-End Transport Protocol for Extreme Wireless Network Environments. MILCOM 2006"},
	{"qaddoura-2006", "E. Qaddoura, A. Daraiseh, W. Al Mobaideen, R. Muammar, S. Al-Walaie: TCP Optimal Performance in Wireless Networks Applications. 2006"},
	{"Iglewicz and Hoaglin, 1993", "B. Iglewicz, D. C. Hoaglin: How to Detect and Handle Outliers. ASQC Quality Press, 1993"},
	{"Jain, Chiu and Hawe (1984)", "R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared Computer Systems. DEC Research Report TR-301, 1984"},
	{"Jennison and Turnbull 1989", "C. Jennison, B. W. Turnbull: Interim Analyses: The Repeated Confidence Interval Approach. Journal of the Royal Statistical Society B 51, 1989"},
	{"Kaplan and Meier (1958)", "E. L. Kaplan, P. Meier: Nonparametric Estimation from Incomplete Observations. Journal of the American Statistical Association 53, 1958"},
	{"RFC 2330", "V. Paxson, G. Almes, J. Mahdavi, M. Mathis: Framework for IP Performance Metrics. 1998"},
	{"RFC 2863", "K. McCloghrie, F. Kastenholz: The Interfaces Group MIB. 2000"},
	{"RFC 3168", "K. Ramakrishnan, S. Floyd, D. Black: The Addition of Explicit Congestion Notification (ECN) to IP. 2001"},
	{"RFC 3393", "C. Demichelis, P. Chimento: IP Packet Delay Variation Metric for IP Performance Metrics (IPPM). 2002"},
	{"RFC 3432", "V. Raisanen, G. Grotefeld, A. Morton: Network performance measurement with periodic streams. 2002"},
	{"RFC 3550", "H. Schulzrinne, S. Casner, R. Frederick, V. Jacobson: RTP: A Transport Protocol for Real-Time Applications. 2003"},
	{"RFC 4737", "A. Morton, L. Ciavattone, G. Ramachandran, S. Shalunov, J. Perser: Packet Reordering Metrics. 2006"},
	{"RFC 5560", "H. Uijterwaal: A One-Way Packet Duplication Metric. 2009"},
	{"RFC 6298", "V. Paxson, M. Allman, J. Chu, M. Sargent: Computing TCP's Retransmission Timer. 2011"},
	{"RFC 6349", "B. Constantine, G. Forget, R. Geib, R. Schrage: Framework for TCP Throughput Testing. 2011"},
	{"RFC 7679", "G. Almes, S. Kalidindi, M. Zekauskas, A. Morton: A One-Way Delay Metric for IP Performance Metrics (IPPM). 2016"},
	{"RFC 7680", "G. Almes, S. Kalidindi, M. Zekauskas, A. Morton: A One-Way Loss Metric for IP Performance Metrics (IPPM). 2016"},
	{"RFC 9097", "A. Morton, R. Geib, L. Ciavattone: Metrics and Methods for One-Way IP Capacity. 2021"},
	{"RFC 9293", "W. Eddy: Transmission Control Protocol (TCP). 2022"},
	{"RFC 9946", "L. Ciavattone, R. Geib: UDP Speed Test Protocol for One-Way IP Capacity Metric Measurement"},
	{"ITU-T G.107", "The E-model: a computational model for use in transmission planning. Recommendation ITU-T G.107, 06/2015"},
	{"ITU-T G.113", "Transmission impairments due to speech processing. Recommendation ITU-T G.113"},
	{"ITU-T P.59", "Artificial conversational speech. Recommendation ITU-T P.59"},
	{"STANAG 5066", "Profile for High Frequency (HF) Radio Data Communications. NATO STANAG 5066"},
}

// references lists the works that the texts of a report name by their keys, those of directors
// aside. Where none is named there is no list.
func references(d *Document) []Section {
	cited := map[string]bool{}
	d.eachText(func(text string) {
		for i := range works {
			if key := works[i].key; !cited[key] && names(text, key) {
				cited[key] = true
			}
		}
	})
	var all []Fact
	for _, w := range works {
		if cited[w.key] {
			all = append(all, Fact{Name: w.key, Value: w.text + "."})
		}
	}
	return chapterOf("references", "References", factsOf(all))
}

// names reports whether a text has a key as words of their own: RFC 768 is not in RFC 7680.
func names(text, key string) bool {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for from := 0; ; {
		i := strings.Index(text[from:], key)
		if i < 0 {
			return false
		}
		from += i
		before, _ := utf8.DecodeLastRuneInString(text[:from])
		after, _ := utf8.DecodeRuneInString(text[from+len(key):])
		if !inWord(before) && !inWord(after) {
			return true
		}
		from += len(key)
	}
}

// eachText calls f with the texts of a document that Linktrial made.
func (d *Document) eachText(f func(string)) {
	for i := range d.Sections {
		for j := range d.Sections[i].Blocks {
			b := &d.Sections[i].Blocks[j]
			f(b.Paragraph)
			for _, s := range b.List {
				f(s)
			}
			for _, x := range b.Facts {
				f(x.Value)
			}
			if b.Figure != nil {
				f(b.Figure.Caption)
			}
			if t := b.Table; t != nil {
				t.eachText(f)
			}
		}
	}
}

func (t *Table) eachText(f func(string)) {
	f(t.Caption)
	for _, row := range t.Heads {
		for _, h := range row {
			f(h.Text)
		}
	}
	for i := range t.Rows {
		for _, cell := range t.Rows[i].Cells {
			f(cell)
		}
	}
	for _, s := range t.Notes {
		f(s)
	}
}
