// Package client calls an orchestrator for the user of the command line: with the
// credentials that a login has kept, verifying the certificate against the trusted
// authorities, and with errors that say what to do.
package client
