package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/quota"
	"linktrial/internal/signature"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/liveness"
	"linktrial/orchestrator/rpc/reply"
)

// agents is AgentService.
type agents struct {
	// Calls that this version does not answer yet say so.
	linktrialv1connect.UnimplementedAgentServiceHandler

	cfg Config
}

func (s *agents) Register(ctx context.Context, req *connect.Request[linktrialv1.RegisterRequest]) (*connect.Response[linktrialv1.RegisterResponse], error) {
	m := req.Msg
	r := nodes.Registration{Name: m.Name, Role: m.Role, Version: m.Version, Host: m.Host, Kernel: m.Kernel, Radio: m.Radio, Virtual: m.Virtual,
		RadioAddress: m.RadioAddress, DiskFreeBytes: m.DiskFreeBytes, Incarnation: m.Incarnation}
	r.Lab, r.LabProblem = labOf(m)
	r.Emulated = r.Lab != ""
	for _, d := range m.Drivers {
		r.Drivers = append(r.Drivers, nodes.Driver{Name: d.Name, Version: d.Version, Implementation: d.Implementation, SHA256: d.Sha256, Digest: d.Digest, Unsupported: d.Unsupported, Choices: d.Choices,
			Remarks: d.Remarks})
	}
	if err := s.cfg.Engine.Nodes.Register(ctx, r); err != nil {
		if b, over := quota.Of(err); over {
			s.cfg.OverBound(b)
		}
		return nil, s.cfg.answer(ctx, "register", err)
	}
	s.cfg.Fleet.SetInterfaces(m.Name, m.Interfaces, m.Radios)
	signed, err := s.radio(ctx, m, r.Emulated)
	if err != nil {
		return nil, s.cfg.answer(ctx, "register", err)
	}
	return connect.NewResponse(&linktrialv1.RegisterResponse{Radio: signed, OrchestratorVersion: s.cfg.Version, Protocol: agentprotocol.Agreed(m.Protocol),
		SigningKeys: reply.SigningKeys(s.cfg.Trust.Keys())}), nil
}

// labOf is the identity of the lab that vouches for a node, and for a node that was
// started for one why none does. A node counts as emulated by the lab's signature alone.
func labOf(m *linktrialv1.RegisterRequest) (lab, problem string) {
	if !m.Emulated && !m.Virtual {
		return "", ""
	}
	if m.LabProblem != "" {
		return "", m.LabProblem
	}
	s := signature.LabStatement{Kind: signature.LabNode, Subject: m.Name, Detail: m.Incarnation, Role: m.Role, Address: m.RadioAddress}
	if m.Virtual {
		s.Kind = signature.LabVirtual
	}
	k, err := signature.VerifyLab(s, signature.LabProof{Key: m.LabKey, Signature: m.LabSignature})
	if err != nil {
		return "", err.Error()
	}
	return k.ID(), ""
}

var desired = map[nodes.DesiredState]linktrialv1.Assignment_DesiredState{
	nodes.DesirePrepare: linktrialv1.Assignment_DESIRED_STATE_PREPARE,
	nodes.DesireRun:     linktrialv1.Assignment_DESIRED_STATE_RUN,
	nodes.DesireFinish:  linktrialv1.Assignment_DESIRED_STATE_FINISH,
	nodes.DesireAbort:   linktrialv1.Assignment_DESIRED_STATE_ABORT,
}

func (s *agents) Poll(ctx context.Context, req *connect.Request[linktrialv1.PollRequest]) (*connect.Response[linktrialv1.PollResponse], error) {
	m := req.Msg
	s.noteContact(m)
	s.noteFaults(ctx, m)
	s.cfg.Engine.Nodes.SetConnection(m.Name, m.Incarnation, liveness.Of(ctx))
	s.cfg.Fleet.Polls(m.Name)
	// A node that is cut off does not count as connected for as long as its poll
	// would wait. Where it comes back on the same connection it is told to poll again.
	ctx, stop := liveness.Watch(ctx, liveness.Limit)
	defer stop()
	revision, assignments, err := s.cfg.Engine.Nodes.Poll(ctx, m.Name, m.Incarnation, m.Revision, m.DiskFreeBytes, time.Duration(m.WaitMs)*time.Millisecond)
	if err != nil && errors.Is(context.Cause(ctx), liveness.ErrNoContact) {
		return nil, connect.NewError(connect.CodeAborted, fmt.Errorf("nothing arrived from the node for %s, so its poll ended: poll again", liveness.Limit))
	}
	if err != nil {
		return nil, s.cfg.answer(ctx, "poll", err)
	}
	out := &linktrialv1.PollResponse{Revision: revision}
	if m.Brief && revision == m.Revision {
		return connect.NewResponse(out), nil
	}
	if err := s.assign(ctx, m, out, assignments); err != nil {
		return nil, s.cfg.answer(ctx, "poll", err)
	}
	return connect.NewResponse(out), nil
}

func (s *agents) Deliver(ctx context.Context, req *connect.Request[linktrialv1.DeliverRequest]) (*connect.Response[linktrialv1.DeliverResponse], error) {
	m := req.Msg
	records := make([]ingest.Record, len(m.Records))
	for i, r := range m.Records {
		records[i] = ingest.Record{Seq: r.Seq, JSON: r.Json}
	}
	began := time.Now()
	committed, err := s.cfg.Ingest.Deliver(ctx, m.RunId, m.Name, records)
	s.cfg.Delivered(outcome(err), time.Since(began))
	if err != nil {
		if b, over := quota.Of(err); over {
			s.cfg.OverBound(b)
		}
		return nil, s.cfg.answer(ctx, "deliver", err)
	}
	s.cfg.Engine.Nodes.Delivered(m.Name, m.Incarnation, m.RunId)
	out := &linktrialv1.DeliverResponse{CommittedSeq: committed}
	if cert := s.cfg.Authority.CertificateOf(ctx); len(m.Statement) > 0 && cert != nil {
		out.StatementStored, err = s.cfg.Ingest.TakeStatement(ctx, m.RunId, m.Name, &ingest.Signed{Statement: m.Statement, Signature: m.StatementSignature, Certificate: cert})
		if err != nil {
			return nil, s.cfg.answer(ctx, "deliver", err)
		}
	}
	return connect.NewResponse(out), nil
}

func outcome(err error) string {
	var refused *ingest.RefusedError
	var conflict *ingest.ConflictError
	var bound *ingest.BoundError
	switch {
	case err == nil:
		return "stored"
	case errors.As(err, &bound):
		return "over-bound"
	case errors.As(err, &refused), errors.As(err, &conflict), errors.Is(err, ingest.ErrNotFound):
		return "refused"
	}
	return "failed"
}

func (s *agents) Clock(_ context.Context, _ *connect.Request[linktrialv1.ClockRequest]) (*connect.Response[linktrialv1.ClockResponse], error) {
	received := time.Now().UnixNano()
	return connect.NewResponse(&linktrialv1.ClockResponse{ReceivedUnixNs: received, SentUnixNs: time.Now().UnixNano()}), nil
}
