// Package access decides who may call the orchestrator and what they may do: users
// with passwords and second factors or of an OpenID Connect provider, sessions of browsers, API tokens of programs, roles, and the
// audit log of what people did. Comes in: HTTP requests to any of the
// orchestrator's services. Goes out: the requests that may pass, each with its
// [Principal], and refusals of one sentence.
//
// Every call passes two checks. [Access.Guard] wraps the whole HTTP server: it
// authenticates the caller and compares the role with the one that the procedure
// requires, before a byte of the body is read. [Access.Interceptor] sees the
// message: it writes to the audit log what was asked and how it ended, and sets
// the fields named "by" to the name of who is logged in. Both speak the API's
// protocols and therefore know connect; nothing else here does. The procedures
// that nodes call pass both; orchestrator/security/authority guards those.
//
// rpc/people answers AccessService with the methods of [Access].
package access
