// Package authority is the orchestrator's certificate authority: it makes
// one-time tokens, gives nodes certificates for keys that they made themselves,
// renews and ends them, and guards the agents' calls. Comes in: a folder for its
// key, the store, certificate requests. Goes out: certificates, the TLS
// configuration of the server, and who is calling.
package authority
