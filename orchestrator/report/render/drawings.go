package render

import "linktrial/orchestrator/report/figure"

var throughputFormat = &Format{Name: "svg", Title: "SVG, throughput by treatment", File: "results.svg", MediaType: svgImage, Numbered: ByPart,
	Holds: "the paper's chart: minimum to maximum, mean ± SD, every iteration",
	write: inMemory(figure.Throughput), parts: figure.RunParts}

var distributionFormat = &Format{Name: "cdf-svg", Title: "SVG, distribution of throughput", File: "cdf.svg", MediaType: svgImage, Numbered: ByPart,
	Holds: "the cumulative distribution of throughput: for each run and treatment, the share of valid trials with at most the throughput on the x axis",
	write: inMemory(figure.Distribution), parts: figure.RunParts}

var deliveryFormat = &Format{Name: "delivery-svg", Title: "SVG, time to delivery", File: "delivery.svg", MediaType: svgImage, Numbered: ByPart,
	Holds: "the share delivered over time: for each run and treatment, the share of valid and failed trials whose payload was there by the time on the x axis",
	write: inMemory(figure.Delivery), parts: figure.RunParts}

var delaysFormat = &Format{Name: "delays-svg", Title: "SVG, distribution of probes' delays", File: "delays.svg", MediaType: svgImage, Of: OfProbes, Numbered: ByPart,
	Holds: "the cumulative distribution of [probes'](probes.md) one-way delays: for each run and probe, the share of the packets that arrived within the delay on the x axis, alone and beside each treatment; marks at the 50th, 95th and 99th percentile, with what the clocks are uncertain by",
	write: inMemory(figure.Delays), parts: figure.DelayParts}

var curvesFormat = &Format{Name: "sweep-svg", Title: "SVG, parameter curves", File: "sweep.svg", MediaType: svgImage, Of: OfSweeps, Numbered: ByPart,
	Holds: "the curves of `sweep`, drawn",
	write: inMemory(figure.Curves), parts: figure.CurveParts}

var sequenceFormat = &Format{Name: "sequence-svg", Title: "SVG, time–sequence diagram", File: "sequence.svg", MediaType: svgImage, Of: OfSamples, Source: FromSamples, Numbered: ByIteration,
	Holds: "time–sequence diagram of one iteration (by default the first) of a run; for a campaign, of its first run"}
