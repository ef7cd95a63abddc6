package measure

import (
	"fmt"
	"slices"
	"strings"

	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
)

// judgeChat judges chat and positions by small packets and messages on an idle link.
func judgeChat(v *Values, t Thresholds) Use {
	u := Use{Name: "chat and positions"}
	for w, p := range v.Idle {
		way := Way(w)
		if p == nil || p.Sent == 0 {
			u.lacks("Small packets %s: %s.", way, v.whyNot(p))
			continue
		}
		u.smallPackets(v, p, t)
		u.messages(v, v.Messages[w], way, t)
	}
	return u.end()
}

// smallPackets judges the constant probe of one way.
func (u *Use) smallPackets(v *Values, p *report.ProbeRow, t Thresholds) {
	way := wayOf(p.From)
	u.Checks = append(u.Checks, lossCheck("loss", way, p.Lost, p.Sent, "packets", t))
	if p.DelayP95MS == nil {
		return // no packet arrived, which the loss says
	}
	if p.UncertaintyMS == nil {
		u.lacks("Delay of small packets %s: the nodes' clocks were not compared (%s).", way, v.ClocksUnknown)
		return
	}
	u.Checks = append(u.Checks, Check{Metric: "delay, 95 % of packets", Unit: "ms", Way: way.String(), Value: *p.DelayP95MS,
		Low: *p.DelayP95MS - *p.UncertaintyMS, High: *p.DelayP95MS + *p.UncertaintyMS, Threshold: t.ChatDelayMS, Source: ours}.decide())
}

// lossCheck judges the share that was lost, by Wilson's interval.
func lossCheck(metric string, way Way, lost, sent int64, what string, t Thresholds) Check {
	share := stats.Wilson(int(lost), int(sent), 0.95)
	return Check{Metric: metric, Unit: "%", Way: way.String(), Value: 100 * float64(lost) / float64(sent), Low: 100 * share.Low, High: 100 * share.High,
		Threshold: 100 * t.ChatLoss, Source: ours, Note: fmt.Sprintf("%d of %d %s", lost, sent, what)}.decide()
}

// chatMessage is the size of the messages by which chat is judged, in bytes.
const chatMessage = 1024

// messages judges messages of [chatMessage]. Where they are too few to tell the loss and
// none was lost, that of small packets alone tells it. A measurement of a version without
// messages has none, and nor has a track.
func (u *Use) messages(v *Values, p *report.ProbeRow, way Way, t Thresholds) {
	if p == nil {
		return
	}
	i := slices.IndexFunc(p.Messages, func(m report.MessagesRow) bool { return m.Bytes == chatMessage && m.Sent > 0 })
	if i < 0 {
		why := v.whyNot(p)
		if p.Sent > 0 {
			why = "the time was too short for one of " + sizeText(chatMessage)
		}
		u.lacks("Messages %s: %s.", way, why)
		return
	}
	m := &p.Messages[i]
	if c := lossCheck("loss of messages of "+sizeText(chatMessage), way, m.Sent-m.Delivered, m.Sent, "messages", t); m.Delivered < m.Sent || c.Outcome != Undecided {
		u.Checks = append(u.Checks, c)
	}
	if m.TimeP95MS == nil || p.UncertaintyMS == nil {
		return // none was delivered, or the clocks are not known, which small packets say
	}
	u.Checks = append(u.Checks, Check{Metric: "time of 95 % of messages of " + sizeText(chatMessage), Unit: "ms", Way: way.String(), Value: *m.TimeP95MS,
		Low: *m.TimeP95MS - *p.UncertaintyMS, High: *m.TimeP95MS + *p.UncertaintyMS, Threshold: t.ChatDelayMS, Source: ours, Note: fmt.Sprintf("%d messages", m.Delivered)}.decide())
}

// judgeChatLoaded judges the small packets beside a transfer from client to server. As a file
// can be sent by either protocol, the better one decides, and the other's outcome is noted.
func judgeChatLoaded(v *Values, t Thresholds) Use {
	const name = "chat while a file is sent"
	var all []Use
	var labels []string
	for i := range v.Loaded {
		p := &v.Loaded[i]
		k := slices.Index(labels, p.BesideLabel)
		if k < 0 {
			k = len(labels)
			all, labels = append(all, Use{Name: name}), append(labels, p.BesideLabel)
		}
		u := &all[k]
		if p.Sent == 0 {
			u.lacks("Small packets beside %s, %s: %s.", p.BesideLabel, wayOf(p.From), v.whyNot(p))
			continue
		}
		if p.FailedTransfers > 0 { // what fails beside it is no better beside one that does not
			u.lacks("Small packets beside %s, %s: the transfer failed, so that they may have met less load.", p.BesideLabel, wayOf(p.From))
		}
		from := len(u.Checks)
		u.smallPackets(v, p, t)
		for n := from; n < len(u.Checks); n++ {
			u.Checks[n].Metric += ", beside " + p.BesideLabel
		}
	}
	if len(all) == 0 {
		u := Use{Name: name}
		u.lacks("Small packets beside transfers: %s.", v.before())
		return u.end()
	}
	best := 0
	for k := range all {
		all[k] = all[k].end()
		if rank[all[k].Outcome] > rank[all[best].Outcome] {
			best = k
		}
	}
	u := all[best]
	for k := range all {
		if all[k].Outcome != u.Outcome && len(u.Checks) > 0 {
			c := &u.Checks[len(u.Checks)-1]
			c.Note = strings.TrimPrefix(fmt.Sprintf("%s; beside %s: %s", c.Note, labels[k], all[k].Outcome), "; ")
		}
	}
	return u
}

// rank orders outcomes, the best one highest.
var rank = map[Outcome]int{No: 0, Undecided: 1, Yes: 2}
