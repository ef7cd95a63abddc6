package executor

import (
	"linktrial/executor/journal"
	"linktrial/executor/stoprule"
)

// look judges by the plan's rule to stop by, where an iteration has ended after which it looks,
// and ends the trials that are not needed. The look is in the journal before it takes effect: a
// crash in between changes nothing.
func (p *progress) look() error {
	s := p.node.sheet
	if s.Stop == nil {
		return nil
	}
	for _, iteration := range s.Stop.Looks {
		if len(p.state.Looks) > 0 && iteration <= p.state.Looks[len(p.state.Looks)-1].Iteration {
			continue
		}
		if !p.ended(iteration) {
			break
		}
		var beaten []string
		if n := len(p.state.Looks); n > 0 {
			beaten = p.state.Looks[n-1].Beaten
		}
		l := stoprule.Judge(s, stoprule.TimesOf(s, p.state, iteration), iteration, beaten)
		p.node.record.append(journal.TypeLook, l)
		if err := p.node.record.sync(); err != nil {
			return err
		}
		p.state.Looks = append(p.state.Looks, l)
		if l.Stop {
			break
		}
	}
	return p.endNotNeeded()
}

// ended reports whether all trials up to an iteration have ended.
func (p *progress) ended(iteration int) bool {
	for i := range p.node.sheet.Trials {
		if p.node.sheet.Trials[i].Iteration <= iteration && !p.state.Trial(i).Ended {
			return false
		}
	}
	return true
}

func (p *progress) endNotNeeded() error {
	some := false
	for i := range p.node.sheet.Trials {
		if t := p.state.Trial(i); !t.Ended && t.Attempts == 0 && p.notNeeded(i) {
			p.node.record.append(journal.TypeTrialEnded, journal.TrialEnded{Trial: i, Verdict: journal.Aborted, Reason: journal.ReasonNotNeeded})
			p.state.EndTrial(i)
			some = true
		}
	}
	if !some {
		return nil
	}
	return p.node.record.sync()
}
