// Package security is the folder of what decides who may do what, and who is believed. It
// has no code itself. A call passes its packages in this order, before a procedure runs
// (package server puts them there):
//
//	call ──▶ admission ──▶ authority ──▶ access ──▶ procedure (rpc)
//	         how much      which node,   who, by role     │
//	         of what       by its        and procedure    ├──▶ auditlog: what was done and refused
//	                       certificate      │             └──▶ signing: what nodes execute
//	                                        └──▶ provider: logins at an OpenID Connect provider
//
// Laptops that have a spoken code get their first token from joining, which anybody may
// call. Procedures ask access for the caller and authority for certificates; launch and rpc have
// signing sign what nodes are sent. No other room decides any of it, and a test in
// internal/importrules holds who may import what. docs/security.md says which threat is met
// by what.
package security
