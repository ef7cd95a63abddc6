// Package rpc answers the API: AgentService for nodes, OperatorService for
// people and scripts. It translates; what happens is decided in
// orchestrator/campaign, stored by orchestrator/ingest, read by
// orchestrator/store and rendered by orchestrator/report. Comes in and goes
// out: the messages of api/proto. Imports api/gen and the orchestrator's rooms.
package rpc
