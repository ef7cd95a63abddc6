package radio

import (
	"slices"
	"time"

	"linktrial/internal/yamlschema"
)

// Bounds of channels.
const (
	minSlot    = time.Microsecond   // no radio's conditions change faster
	maxMoment  = 7 * 24 * time.Hour // within a trial
	minStep    = 10 * time.Millisecond
	maxStates  = 16
	maxOutages = 10_000
	leastShare = 1e-9 // of what must come to pass
)

var probability = yamlschema.Number(0, 1)

// simpleModels is every model but the combined one, in the order in which messages list them.
var simpleModels = variants{
	{"Loses nothing.", modelKeys(ChannelPerfect)},
	{"Loses packets independently of each other.", modelKeys(ChannelUniform,
		yamlschema.Key{Name: "loss", Form: probability, Required: true, Example: "0.1", Meaning: "Share of the packets that are lost, 0 to 1."})},
	{"Two states on time slots with a loss each.", modelKeys(ChannelGilbertElliott, slotKey("Length of a time slot."),
		yamlschema.Key{Name: "good_to_bad", Form: probability, Required: true, Example: "0.0278", Meaning: "Probability that the bad state follows a good slot."},
		yamlschema.Key{Name: "bad_to_good", Form: yamlschema.Number(leastShare, 1), Required: true, Example: "0.25", Meaning: "Probability that the good state follows a bad slot."},
		yamlschema.Key{Name: "loss_good", Form: probability, Default: 0.0, Example: "0.01", Meaning: "Share of the packets that are lost in the good state."},
		yamlschema.Key{Name: "loss_bad", Form: probability, Default: 1.0, Example: "0.8", Meaning: "Share of the packets that are lost in the bad state."})},
	{"Two states on time slots; every packet is lost in the bad one (decola-2006).", modelKeys(ChannelMarkov,
		slotKey("Length of a time slot; a packet is lost when any slot that it overlaps is bad. Without it one block is one slot, and a packet's fate is that of the slot in which it starts (decola-2006, equation 4)."),
		yamlschema.Key{Name: "alpha", Form: probability, Required: true, Example: "0.01", Meaning: "Probability that the bad state follows a good slot."},
		yamlschema.Key{Name: "beta", Form: yamlschema.Number(leastShare, 1), Required: true, Example: "0.1", Meaning: "Probability that the good state follows a bad slot."})},
	{"Periods of drawn length with a higher and a lower loss in turn (lttcp-2006).", modelKeys(ChannelOnOff,
		yamlschema.Key{Name: "loss", Form: probability, Required: true, Example: "0.5", Meaning: "Share of the packets that are lost on average, 0 to 1. Times the larger factor it is at most 1."},
		yamlschema.Key{Name: "period_min", Form: yamlschema.Duration(minSlot, maxDelay), Required: true, Example: "9ms", Meaning: "Shortest length of a period."},
		yamlschema.Key{Name: "period_max", Form: yamlschema.Duration(0, maxDelay), Required: true, Example: "11ms", Meaning: "Longest length of a period, at least period_min."},
		yamlschema.Key{Name: "on_factor", Form: yamlschema.Number(0, 1e6), Default: 1.5, Example: "1.8", Meaning: "What the loss is multiplied with in a period of more loss."},
		yamlschema.Key{Name: "off_factor", Form: yamlschema.Number(0, 1e6), Default: 0.5, Example: "0.2", Meaning: "What the loss is multiplied with in a period of less loss."})},
	{"Bit errors from a hidden Markov model (dantas-2011).", modelKeys(ChannelHiddenMarkov,
		yamlschema.Key{Name: "transition", Form: yamlschema.List(yamlschema.List(probability, 1, maxStates), 1, maxStates), Required: true, Example: "[[0.9, 0.1], [0.5, 0.5]]",
			Meaning: "Probabilities from bit to bit, a row for the state that is left; each row sums to 1."},
		yamlschema.Key{Name: "bit_error_rates", Form: yamlschema.List(probability, 1, maxStates), Required: true, Example: "[0, 1]", Meaning: "Share of wrong bits in each state."},
		yamlschema.Key{Name: "target_bit_error_rate", Form: probability, Unset: "the rates as they are", Example: "1e-3", Meaning: "Mean share of wrong bits to which the rates of the states are scaled."})},
	{"Loses packets during stated times: either times, or period and length.", modelKeys(ChannelOutages,
		yamlschema.Key{Name: "times", Form: yamlschema.List(yamlschema.Of(outageKeys), 1, maxOutages), Unset: "outages come by period", Example: "[{start: 50s, end: 50.1s}]", Instead: []string{"period", "length", "offset"},
			Meaning: "Each outage, from the start of the trial; they do not overlap."},
		yamlschema.Key{Name: "period", Form: yamlschema.Duration(minSlot, maxMoment), Unset: "outages are at stated times", Example: "6s", Beside: "{length: 1s}", Instead: []string{"times"},
			Meaning: "Time from the start of one outage to that of the next."},
		yamlschema.Key{Name: "length", Form: yamlschema.Duration(0, maxMoment), Unset: "an error with period", Example: "1s", Beside: "{period: 6s}", Instead: []string{"times"}, Meaning: "How long each lasts, at most the period."},
		yamlschema.Key{Name: "offset", Form: yamlschema.Duration(0, maxMoment), Default: time.Duration(0), Example: "5s", Beside: "{period: 6s, length: 1s}", Instead: []string{"times"}, Meaning: "When the first begins, from the start of the trial."},
		yamlschema.Key{Name: "loss", Form: probability, Default: 1.0, Example: "0.5", Beside: "{period: 6s, length: 1s}", Meaning: "Share of the packets that an outage loses, 0 to 1."})},
	{"Recorded rate, delay and loss over time ([traces](#traces)).", modelKeys(ChannelTrace,
		yamlschema.Key{Name: "file", Form: yamlschema.Matching("name of a .csv file", `^[^./\\][^/\\]*\.csv$`), Required: true, Example: "drive.csv", Meaning: "The trace, in the profile's own folder."},
		yamlschema.Key{Name: "repeat", Form: yamlschema.Flag(), Default: false, Example: "true", Meaning: "The trace begins anew after its last row; else that row holds on."})},
	{"Rate and loss follow the distance between the ends of the link. Who moves, where and how fast is the topology's (`moves` of a station).", modelKeys(ChannelMobility,
		yamlschema.Key{Name: "step", Form: yamlschema.Duration(minStep, maxDelay), Default: time.Second, Example: "100ms", Meaning: "How often rate and loss are found anew."},
		snrKey("exponent", yamlschema.Number(1, 10), "3", "Exponent of the log-distance path loss; 2 in free space."),
		snrKey("reference", yamlschema.Distance(0, maxDistance), "100 m", "Distance of more than 0 at which reference_snr holds."),
		snrKey("reference_snr", yamlschema.Number(-200, 200), "30", "Signal-to-noise ratio at the reference distance, dB."),
		yamlschema.Key{Name: "levels", Form: yamlschema.List(yamlschema.Of(levelKeys), 1, 0), Required: true, Example: "[{up_to: 100 m, rate: 2 Mbit/s, loss: 0}]",
			Meaning: "From the best conditions to the worst, all by distance or all by SNR. The first that applies holds; beyond the last every packet is lost."})},
}

func modelKeys(model ChannelModel, keys ...yamlschema.Key) *yamlschema.Mapping {
	return &yamlschema.Mapping{Name: string(model), Keys: keys}
}

func slotKey(meaning string) yamlschema.Key {
	return yamlschema.Key{Name: "slot", Form: yamlschema.Duration(minSlot, maxDelay), Unset: "airtime of a full-sized packet at the link's rate", Example: "10ms", Meaning: meaning}
}

// snrKey is a key of levels by SNR.
func snrKey(name string, form yamlschema.Form, example, meaning string) yamlschema.Key {
	return yamlschema.Key{Name: name, Form: form, Unset: "an error with levels by SNR", Example: example, Meaning: meaning,
		Beside: "{levels: [{min_snr: 3, rate: 1 Mbit/s, loss: 0}], exponent: 3, reference: 100 m, reference_snr: 30}"}
}

var outageKeys = &yamlschema.Mapping{Name: "outages", Inline: true, Keys: []yamlschema.Key{
	{Name: "start", Form: yamlschema.Duration(0, maxMoment), Required: true, Example: "50s", Meaning: "When the outage begins, from the start of the trial."},
	{Name: "end", Form: yamlschema.Duration(0, maxMoment), Required: true, Example: "51s", Meaning: "When it has ended, after its start."},
}}

var levelKeys = &yamlschema.Mapping{Name: "levels", Keys: []yamlschema.Key{
	{Name: "up_to", Form: yamlschema.Distance(0, maxDistance), Unset: "the level is by SNR", Example: "100 m", Instead: []string{"min_snr"}, Meaning: "Largest distance at which the level holds."},
	{Name: "min_snr", Form: yamlschema.Number(-200, 200), Unset: "the level is by distance", Example: "3", Instead: []string{"up_to"}, Meaning: "Least signal-to-noise ratio at which the level holds, dB."},
	{Name: "rate", Form: yamlschema.Rate(1, maxRate), Required: true, Example: "2 Mbit/s", Meaning: "Rate on the air."},
	{Name: "loss", Form: probability, Required: true, Example: "0.1", Meaning: "Share of the packets that are lost, 0 to 1."},
}}

var modelKey = yamlschema.Key{Name: "model", Meaning: "The error process."}

// partKeys are the keys of what a combined channel combines.
var partKeys = &yamlschema.Mapping{Name: "parts", Keys: simpleModels.keyed(modelKey)}

// channelModels is every model.
var channelModels = append(slices.Clone(simpleModels), variant{"Several processes at once: a packet is lost when any of them loses it.", modelKeys(ChannelCombined,
	yamlschema.Key{Name: "parts", Form: yamlschema.List(yamlschema.Of(partKeys), 2, 0), Required: true, Example: "[{model: uniform, loss: 0.5}, {model: outages, period: 6s, length: 1s}]",
		Meaning: "The processes, each as a channel; none is combined."})})

// siteChannelKeys are those of a channel whose source stands beside it, channelKeys those of
// one that has its own.
var (
	siteChannelKeys = &yamlschema.Mapping{Name: "channels of sites", Keys: channelModels.keyed(modelKey)}
	channelKeys     = &yamlschema.Mapping{Name: "channels", Keys: slices.Concat([]yamlschema.Key{sourceKey("Where the process and its parameters are known from.")}, siteChannelKeys.Keys)}
)
