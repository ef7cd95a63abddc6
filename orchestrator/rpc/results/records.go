package results

import (
	"context"
	"fmt"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/store"
)

// ListRecords answers linktrial audit-run.
func (s *Service) ListRecords(ctx context.Context, req *connect.Request[linktrialv1.ListRecordsRequest]) (*connect.Response[linktrialv1.ListRecordsResponse], error) {
	out, err := s.listRecords(ctx, req.Msg)
	if err != nil {
		return nil, s.answer(ctx, "list records", err)
	}
	return connect.NewResponse(out), nil
}

func (s *Service) listRecords(ctx context.Context, m *linktrialv1.ListRecordsRequest) (*linktrialv1.ListRecordsResponse, error) {
	run, _, err := s.cfg.Store.FindRun(ctx, m.RunId)
	if err != nil {
		return nil, err
	}
	nodes, err := s.cfg.Store.RunNodes(ctx, run)
	if err != nil {
		return nil, err
	}
	out := &linktrialv1.ListRecordsResponse{}
	for _, n := range nodes {
		j := &linktrialv1.StoredJournal{Node: n.Node, Role: n.Role, CommittedSeq: n.CommittedSeq, EndReason: n.EndReason}
		if n.Ended != nil {
			j.Ended = *n.Ended
		}
		out.Journals = append(out.Journals, j)
	}
	if m.Node == "" {
		return out, nil
	}
	if !slices.ContainsFunc(nodes, func(n store.RunNode) bool { return n.Node == m.Node }) {
		return nil, fmt.Errorf("run %s, node %q: %w", run, m.Node, store.ErrNotFound)
	}
	records, err := s.cfg.Store.Records(ctx, run, m.Node, m.AfterSeq, m.Bodies)
	if err != nil {
		return nil, err
	}
	for i := range records {
		r := &records[i]
		out.Records = append(out.Records, &linktrialv1.StoredRecord{Seq: r.Seq, Type: r.Type, At: timestamppb.New(r.At), Sha256: r.SHA256, BodyJson: string(r.Body)})
	}
	return out, nil
}
