// Package rpc answers the API; every handler of the orchestrator is here or in a
// package below. AgentService is for nodes; OperatorService, ControlService,
// CatalogService, LibraryService, FleetService and LabService are for people and
// scripts. rpc/results answers ResultService, rpc/people AccessService, rpc/trust
// TrustService, rpc/enrol EnrolmentService and NodeService, rpc/day DayService,
// rpc/measuring MeasureService, rpc/packing EvidenceService. rpc/reply has what several of them answer with.
//
// Handlers translate; what happens is decided in orchestrator/launch, campaign,
// fleet, library, access, authority and signing, stored by orchestrator/ingest, read by
// orchestrator/store and rendered by orchestrator/report. What only the program
// that runs the orchestrator can do, it gives as a [Lab] and as [Drivers]. Comes
// in and goes out: the messages of api/proto.
package rpc
