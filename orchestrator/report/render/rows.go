package render

// The files of rows. orchestrator/rpc/results has what reads them from the store.

var samplesFormat = &Format{Name: "samples-csv", Title: "CSV, a row a sample", File: "samples.csv", MediaType: csvText, Source: FromRows,
	Holds: "a row for each sample of each flow"}

var channelsFormat = &Format{Name: "channels-csv", Title: "CSV, a row a change of a channel", File: "channels.csv", MediaType: csvText, Source: FromRows,
	Holds: "how the channels of the emulated radios changed during each attempt"}

var readingsFormat = &Format{Name: "readings-csv", Title: "CSV, a row a reading of a radio", File: "readings.csv", MediaType: csvText, Source: FromRows,
	Holds: "the telemetry of `telemetry-csv` as it was read, a row for each reading, also between trials"}
