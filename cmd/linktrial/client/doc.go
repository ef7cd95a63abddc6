// Package client calls an orchestrator for the person at the command line: it
// finds the credentials that a login kept, holds the certificate against the
// authorities that were named to it, and puts failed calls into sentences that
// say what to do.
package client
