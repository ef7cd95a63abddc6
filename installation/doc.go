// Package installation is what of Linktrial a machine runs, where a package has installed
// program, users and units: the orchestrator, the agent, both or neither. Comes in: the
// settings of each. Goes out: /etc/linktrial/orchestrator.env and agent.env, services that
// the service manager starts at every boot or does not, and their state.
//
// Its files are, from the top down: machine.go (starting and stopping, all of a step or
// nothing), settings.go (which keys of the files the settings are), check.go (what must be
// there beforehand), systemd.go (the service manager), options.go (words of a list of
// flags), envfile.go (files as systemd's EnvironmentFile reads them).
package installation
