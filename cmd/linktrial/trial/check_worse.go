package trial

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/orchestrator/report/wording"
)

// worseFlag is the flag of --check that holds a campaign against another one.
const worseFlag = "worse-than"

// parseWorseThan reads by how many percent throughputs may be lower, from 0 to below 100, and
// refuses what is not one campaign beside another.
func parseWorseThan(text string, ids []string) (percent float64, err error) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	percent, err = strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !isPercent || err != nil || !(percent >= 0 && percent < 100) {
		return 0, fmt.Errorf("--worse-than %q: expected 0%% to below 100%%, as 5%%", text)
	}
	if len(ids) != 2 {
		return 0, fmt.Errorf("--worse-than holds the second campaign against the first: expected two campaigns, found %d", len(ids))
	}
	return percent, nil
}

// writeWorse writes a line for every treatment of the first campaign under each of its
// conditions: whether the second one's average throughput there is at most so many percent
// lower. It returns the outcome of all.
func writeWorse(w io.Writer, there *linktrialv1.SummarizeResponse, percent float64) (linktrialv1.RequiredOutcome, error) {
	if len(there.Differences) == 0 && len(there.DifferencesLacking) == 0 {
		return 0, errors.New("--worse-than holds the second campaign against the first: these are not two campaigns with treatments that were run")
	}
	count, where := map[linktrialv1.RequiredOutcome]int{}, ""
	line := func(at, label string, outcome linktrialv1.RequiredOutcome, reason string) error {
		if at != where {
			where = at
			if _, err := fmt.Fprintln(w, terminal.Printable(at)); err != nil {
				return err
			}
		}
		count[outcome]++
		_, err := fmt.Fprintf(w, "  %-9s  %s\n", outcomeWords[outcome], terminal.Printable(label+": "+reason))
		return err
	}
	for _, d := range there.Differences {
		outcome, reason := notWorse(d, percent)
		if err := line(d.Where, d.Label, outcome, reason); err != nil {
			return 0, err
		}
	}
	for _, l := range there.DifferencesLacking {
		if err := line(l.Where, l.Label, linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_UNDECIDED, l.Campaign+" does not have it under these conditions"); err != nil {
			return 0, err
		}
	}
	return writeCounted(w, count)
}

// notWorse is the outcome of one treatment by the interval of its change, and the reason. The
// bound itself passes.
func notWorse(d *linktrialv1.CampaignDifference, percent float64) (linktrialv1.RequiredOutcome, string) {
	outcome, reason := linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_UNDECIDED, ""
	switch {
	case d.ReferenceValid < 2 || d.Valid < 2:
		reason = fmt.Sprintf("no interval of %d and %s", d.ReferenceValid, wording.Plural(int(d.Valid), "valid trial", "valid trials"))
	case d.ChangeLowPercent == nil || d.ChangeHighPercent == nil:
		reason = "no interval: the trials of " + d.Reference + " do not tell its average from 0"
	default:
		low, high := *d.ChangeLowPercent, *d.ChangeHighPercent
		reason = fmt.Sprintf("%s (95 %% interval %s to %s), %s %% allowed", wording.Deviation(d.ChangePercent), wording.Deviation(&low), wording.Deviation(&high), strconv.FormatFloat(0-percent, 'f', -1, 64))
		switch {
		case d.Partial:
		case low >= -percent:
			outcome = linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_PASS
		case high < -percent:
			outcome = linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_FAIL
		}
	}
	for _, remark := range []string{failedOf(d), partly(d), d.Changed} {
		if remark != "" {
			reason += "; " + remark
		}
	}
	return outcome, reason
}

// failedOf says how many trials are in no average because they failed; empty: none.
func failedOf(d *linktrialv1.CampaignDifference) string {
	if d.ReferenceFailed+d.Failed == 0 {
		return ""
	}
	return fmt.Sprintf("failed, and in no average: %d of %d and %d of %d trials", d.ReferenceFailed, d.ReferenceFailed+d.ReferenceValid, d.Failed, d.Failed+d.Valid)
}

func partly(d *linktrialv1.CampaignDifference) string {
	if !d.Partial {
		return ""
	}
	return "partial: trials have not ended"
}
