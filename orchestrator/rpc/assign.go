package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/rpc/reply"
)

// assignmentFor is how long an assignment is accepted after it was signed. The
// challenge in it already makes one of an earlier answer worthless, so that this may be
// long enough for a node whose clock is some hours ahead.
const assignmentFor = 24 * time.Hour

// maxChallenge is longer than the challenge of any agent, in bytes.
const maxChallenge = 64

// sign signs an assignment for the node that calls. The bytes are sent as they were
// signed: encoded again they could be others.
func (s *agents) sign(ctx context.Context, node string, challenge []byte, as *linktrialv1.Assignment) (*linktrialv1.SignedAssignment, error) {
	if len(challenge) > maxChallenge {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("a challenge of %d bytes, expected at most %d", len(challenge), maxChallenge))
	}
	now := time.Now()
	as.Node, as.NodeKey, as.Challenge = node, s.cfg.Authority.KeyOf(ctx), challenge
	as.IssuedUnixMs, as.ExpiresUnixMs = now.UnixMilli(), now.Add(assignmentFor).UnixMilli()
	encoded, err := proto.Marshal(as)
	if err != nil {
		return nil, fmt.Errorf("assignment: %w", err)
	}
	sig := s.cfg.Trust.SignAssignment(encoded)
	return &linktrialv1.SignedAssignment{Assignment: encoded, KeyId: sig.KeyID, Signature: sig.Bytes, RefusedRunId: as.RunId}, nil
}

// assign adds to the answer of a poll what the node is to do.
func (s *agents) assign(ctx context.Context, m *linktrialv1.PollRequest, out *linktrialv1.PollResponse, list []nodes.Assignment) error {
	node, _ := s.cfg.Engine.Nodes.Get(m.Name)
	var all []*linktrialv1.Assignment
	for i := range list {
		all = append(all, runAssignment(&list[i], &node))
	}
	if w := s.cfg.Fleet.Requested(m.Name); w != nil {
		as := &linktrialv1.Assignment{Preflight: w}
		if len(w.RadioProfile) > 0 {
			p := new(radio.Profile)
			if err := json.Unmarshal(w.RadioProfile, p); err != nil {
				return fmt.Errorf("radio profile of a preflight: %w", err)
			}
			as.TelemetryAddresses = p.TelemetryAddresses(node.Emulated, radio.Role(node.Role))
		}
		all = append(all, as)
	}
	if o := s.cfg.Fleet.Ordered(m.Name); o != nil {
		all = append(all, &linktrialv1.Assignment{RadioOrder: o})
	}
	if len(all) == 0 {
		// Without it anybody could have a node end its runs, by an empty answer.
		all = append(all, &linktrialv1.Assignment{})
	}
	for i, as := range all {
		as.Total = int32(len(all))
		signed, err := s.sign(ctx, m.Name, m.Challenge, as)
		if err != nil {
			return err
		}
		if i < len(list) && !m.Brief {
			signed.Sheet = list[i].Sheet
		}
		out.Assignments = append(out.Assignments, signed)
	}
	if keys := s.cfg.Trust.Keys(); len(keys) > 1 {
		out.SigningKeys = reply.SigningKeys(keys)
	}
	return nil
}

// runAssignment is a run's assignment for a node, without what [agents.sign] adds.
func runAssignment(a *nodes.Assignment, node *nodes.Node) *linktrialv1.Assignment {
	role := a.Role
	if role == "" {
		role = radio.Role(node.Role)
	}
	as := &linktrialv1.Assignment{RunId: a.Run, SheetHash: a.SheetHash, DesiredState: desired[a.DesiredState], Reason: a.Reason, Role: string(role), RadioAddresses: map[string]string{}}
	if !a.Signature.IsZero() {
		as.Signature = &linktrialv1.SheetSignature{KeyId: a.Signature.KeyID, Signature: a.Signature.Bytes}
	}
	for role, address := range a.Addresses {
		as.RadioAddresses[string(role)] = address
	}
	for _, o := range a.Commands {
		as.Commands = append(as.Commands, &linktrialv1.RunCommand{Id: o.ID, Kind: o.Kind, Trial: int32(o.Trial), By: o.By})
	}
	if a.Radio != nil {
		as.TelemetryAddresses = a.Radio.TelemetryAddresses(node.Emulated, role)
	}
	return as
}

// radio is what an agent that registers reads of its radio between runs; nil: there
// is no profile of that radio.
func (s *agents) radio(ctx context.Context, m *linktrialv1.RegisterRequest, emulated bool) (*linktrialv1.SignedAssignment, error) {
	p := s.cfg.Catalog.Profile(m.Radio)
	encoded, err := fleet.EncodeProfile(p)
	if err != nil {
		s.cfg.Logger.Error("profile cannot be told to its agents", "radio", m.Radio, "error", err)
	}
	if len(encoded) == 0 {
		return nil, nil
	}
	return s.sign(ctx, m.Name, m.Challenge, &linktrialv1.Assignment{RadioProfile: encoded, TelemetryAddresses: p.TelemetryAddresses(emulated, radio.Role(m.Role))})
}
