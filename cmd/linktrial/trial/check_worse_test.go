package trial

import (
	"testing"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/setting"
)

// changed is a difference of ten trials each whose change has this interval.
func changed(label string, low, percent, high float64) *linktrialv1.CampaignDifference {
	return &linktrialv1.CampaignDifference{Where: "MPU4 at VIP Lot · 64 KiB", Label: label, ReferenceValid: 10, Valid: 10, ChangePercent: &percent, ChangeLowPercent: &low, ChangeHighPercent: &high}
}

// Each treatment is judged by where the whole interval of its change lies.
func TestWorseThan(t *testing.T) {
	const heading = "MPU4 at VIP Lot · 64 KiB\n"
	partial := changed("QUIC", -1, 0, 1)
	partial.Partial = true
	lost := changed("Haul", -4, -2, 0)
	lost.ReferenceFailed, lost.Failed, lost.Changed = 1, 3, "code: 8 → 12"
	alone := &linktrialv1.CampaignDifference{Where: "MPU4 at K Lot · 64 KiB", Label: "UDT", ReferenceValid: 5, Valid: 1}
	wide := &linktrialv1.CampaignDifference{Where: alone.Where, Label: "QUIC", Reference: "c", ReferenceValid: 5, Valid: 5}
	for _, c := range []struct {
		name    string
		of      []*linktrialv1.CampaignDifference
		lacking []*linktrialv1.LackingTreatment
		flag    string
		want    error
		out     string
	}{
		{"above", []*linktrialv1.CampaignDifference{changed("Haul", -4.9, -2, 1), changed("UDT", 3, 4, 5)}, nil, "5%", nil,
			heading + "  pass       Haul: -2.0 % (95 % interval -4.9 % to +1.0 %), -5 % allowed\n  pass       UDT: +4.0 % (95 % interval +3.0 % to +5.0 %), -5 % allowed\npass: of 2, 2 pass, 0 fail, 0 undecided\n"},
		{"the bound itself", []*linktrialv1.CampaignDifference{changed("Haul", -5, -5, -5)}, nil, "5 %", nil,
			heading + "  pass       Haul: -5.0 % (95 % interval -5.0 % to -5.0 %), -5 % allowed\npass: of 1, 1 pass, 0 fail, 0 undecided\n"},
		{"nothing is allowed", []*linktrialv1.CampaignDifference{changed("Haul", 0, 0, 0)}, nil, "0%", nil,
			heading + "  pass       Haul: 0.0 % (95 % interval 0.0 % to 0.0 %), 0 % allowed\npass: of 1, 1 pass, 0 fail, 0 undecided\n"},
		{"across", []*linktrialv1.CampaignDifference{changed("Haul", -6, -2, 1)}, nil, "5%", setting.ExitCode(2),
			heading + "  undecided  Haul: -2.0 % (95 % interval -6.0 % to +1.0 %), -5 % allowed\nundecided: of 1, 0 pass, 0 fail, 1 undecided\n"},
		{"below, whatever else is undecided", []*linktrialv1.CampaignDifference{changed("Haul", -9, -7, -5.1), partial}, nil, "5%", setting.ExitCode(1),
			heading + "  fail       Haul: -7.0 % (95 % interval -9.0 % to -5.1 %), -5 % allowed\n  undecided  QUIC: 0.0 % (95 % interval -1.0 % to +1.0 %), -5 % allowed; partial: trials have not ended\nfail: of 2, 0 pass, 1 fail, 1 undecided\n"},
		{"remarks, no interval, lacking", []*linktrialv1.CampaignDifference{lost, alone, wide}, []*linktrialv1.LackingTreatment{{Where: alone.Where, Label: "SCTP", Campaign: "d"}}, "5%", setting.ExitCode(2),
			heading + "  pass       Haul: -2.0 % (95 % interval -4.0 % to 0.0 %), -5 % allowed; failed, and in no average: 1 of 11 and 3 of 13 trials; code: 8 → 12\n" +
				"MPU4 at K Lot · 64 KiB\n  undecided  UDT: no interval of 5 and 1 valid trial\n  undecided  QUIC: no interval: the trials of c do not tell its average from 0\n  undecided  SCTP: d does not have it under these conditions\nundecided: of 4, 1 pass, 0 fail, 3 undecided\n"},
	} {
		j := &judging{differences: c.of, lacking: c.lacking}
		out, err := j.results(t, "c", "d", "--check", "--worse-than", c.flag)
		require.Equal(t, c.want, err, c.name)
		require.Equal(t, c.out, out, c.name)
		require.Equal(t, []string{"c", "d"}, j.ids)
	}
}

// What cannot be judged is no outcome.
func TestWorseThanIsRefused(t *testing.T) {
	one := []*linktrialv1.CampaignDifference{changed("Haul", 0, 0, 0)}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"c", "d", "--check", "--worse-than", "5"}, `--worse-than "5": expected 0% to below 100%, as 5%`},
		{[]string{"c", "d", "--check", "--worse-than", "-5%"}, `--worse-than "-5%": expected 0% to below 100%, as 5%`},
		{[]string{"c", "d", "--check", "--worse-than", "100%"}, `--worse-than "100%": expected 0% to below 100%, as 5%`},
		{[]string{"c", "d", "--check", "--worse-than", "NaN%"}, `--worse-than "NaN%": expected 0% to below 100%, as 5%`},
		{[]string{"c", "d", "--check", "--worse-than", ""}, `--worse-than "": expected 0% to below 100%, as 5%`},
		{[]string{"c", "--check", "--worse-than", "5%"}, "expected two campaigns, found 1"},
		{[]string{"c", "d", "e", "--check", "--worse-than", "5%"}, "expected two campaigns, found 3"},
		{[]string{"c", "d", "--worse-than", "5%"}, "--worse-than goes with --check"},
		{[]string{"c", "d", "--check", "--worse-than", "5%", "--reference", "udt"}, "it does not go with --reference"},
	} {
		j := &judging{differences: one}
		_, err := j.results(t, c.args...)
		var failed setting.Failed
		require.ErrorAs(t, err, &failed, "%v", c.args)
		require.Equal(t, 3, failed.Code)
		require.ErrorContains(t, err, c.want)
		require.Nil(t, j.ids, "nothing was asked")
	}
	_, err := (&judging{}).results(t, "c", "c", "--check", "--worse-than", "5%")
	require.ErrorContains(t, err, "these are not two campaigns with treatments that were run")
}
