// Package access says who calls the orchestrator and what they may do: users with
// passwords, sessions of browsers, API tokens of programs, roles, and the log of
// what people did. Comes in: HTTP requests to any of the orchestrator's services.
// Goes out: the requests that may pass, each with its [Principal], and refusals
// of one sentence.
//
// Three pieces stand in every call's way. [Access.Guard] wraps the whole HTTP
// server: it finds out who calls and holds the procedure against the table of
// least roles, before a byte of the body is read. [Access.Interceptor] sees the
// message itself: it tells the audit log of what was asked and how it ended,
// and puts the name of who is logged in wherever a message says "by". The
// procedures of nodes pass both; certificates guard those.
package access
