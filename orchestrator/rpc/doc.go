// Package rpc answers the API: AgentService for nodes; OperatorService,
// ControlService, CatalogService, LibraryService, FleetService and LabService for
// people and scripts. rpc/results answers ResultService. It translates; what
// happens is decided in orchestrator/campaign, orchestrator/fleet and
// orchestrator/library, stored by orchestrator/ingest, read by orchestrator/store
// and rendered by orchestrator/report. Comes in and goes out: the messages of
// api/proto.
package rpc
