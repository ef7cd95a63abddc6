package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/driverfolder"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/internal/yamlschema"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/rpc/rpcdb"
)

// Drivers is what is known of protocol drivers on the orchestrator's machine.
// The orchestrator starts none: what runs it gives it one.
type Drivers interface {
	// States asks every driver whether it can run here.
	States(ctx context.Context) ([]*linktrialv1.DriverState, error)
	// Check runs the conformance suite, or the quick one, and tells each check as it
	// ends, and how many there are.
	Check(ctx context.Context, name string, quick bool, tell func(c *linktrialv1.ConformanceCheck, total int)) error
}

// catalogs is CatalogService.
type catalogs struct {
	cfg Config

	mu       sync.Mutex
	checking string // driver whose suite runs
}

func (s *catalogs) fault(ctx context.Context, call string, err error) error {
	var problems yamldoc.Problems
	switch {
	case errors.As(err, &problems):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, catalog.ErrUnknown):
		return connect.NewError(connect.CodeNotFound, err)
	case errors.Is(err, catalog.ErrReadOnly):
		return connect.NewError(connect.CodePermissionDenied, err)
	case errors.Is(err, catalog.ErrInUse):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return s.cfg.answer(ctx, call, err)
}

func (s *catalogs) GetSource(ctx context.Context, req *connect.Request[linktrialv1.GetSourceRequest]) (*connect.Response[linktrialv1.GetSourceResponse], error) {
	var src catalog.Source
	var err error
	switch req.Msg.Kind {
	case "radio":
		src, err = s.cfg.Catalog.ProfileSource(req.Msg.Name)
	case "topology":
		src, err = s.cfg.Catalog.TopologySource(req.Msg.Name)
	default:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("kind %q, expected radio or topology", req.Msg.Kind))
	}
	if err != nil {
		return nil, s.fault(ctx, "get source", err)
	}
	return connect.NewResponse(&linktrialv1.GetSourceResponse{Text: src.Text, File: src.File, Shipped: src.Shipped}), nil
}

// languages are the kinds of documents whose keys [catalogs.GetLanguage] answers.
var languages = []*yamlschema.Document{plan.Language, radio.ProfileLanguage, radio.TopologyLanguage}

func (s *catalogs) GetLanguage(ctx context.Context, req *connect.Request[linktrialv1.GetLanguageRequest]) (*connect.Response[linktrialv1.GetLanguageResponse], error) {
	var names []string
	for _, l := range languages {
		if names = append(names, l.Name); l.Name != req.Msg.Document {
			continue
		}
		schema, err := json.Marshal(l.JSONSchema())
		if err != nil {
			return nil, s.fault(ctx, "get language", err)
		}
		return connect.NewResponse(&linktrialv1.GetLanguageResponse{Schema: schema}), nil
	}
	return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("document %q, expected %s", req.Msg.Document, strings.Join(names, " or ")))
}

func (s *catalogs) SaveTopology(ctx context.Context, req *connect.Request[linktrialv1.SaveTopologyRequest]) (*connect.Response[linktrialv1.SaveTopologyResponse], error) {
	if err := s.cfg.Catalog.SaveTopology(req.Msg.Name, req.Msg.Text); err != nil {
		return nil, s.fault(ctx, "save topology", err)
	}
	return connect.NewResponse(&linktrialv1.SaveTopologyResponse{}), nil
}

func (s *catalogs) DeleteTopology(ctx context.Context, req *connect.Request[linktrialv1.DeleteTopologyRequest]) (*connect.Response[linktrialv1.DeleteTopologyResponse], error) {
	if err := s.cfg.Catalog.DeleteTopology(req.Msg.Name); err != nil {
		return nil, s.fault(ctx, "delete topology", err)
	}
	return connect.NewResponse(&linktrialv1.DeleteTopologyResponse{}), nil
}

func (s *catalogs) SaveProfile(ctx context.Context, req *connect.Request[linktrialv1.SaveProfileRequest]) (*connect.Response[linktrialv1.SaveProfileResponse], error) {
	if err := s.cfg.Catalog.SaveProfile(req.Msg.Name, req.Msg.Text); err != nil {
		return nil, s.fault(ctx, "save radio profile", err)
	}
	return connect.NewResponse(&linktrialv1.SaveProfileResponse{}), nil
}

func (s *catalogs) DeleteProfile(ctx context.Context, req *connect.Request[linktrialv1.DeleteProfileRequest]) (*connect.Response[linktrialv1.DeleteProfileResponse], error) {
	err := s.unusedProfile(ctx, req.Msg.Name)
	if err == nil {
		err = s.cfg.Catalog.DeleteProfile(req.Msg.Name)
	}
	if err != nil {
		return nil, s.fault(ctx, "delete radio profile", err)
	}
	return connect.NewResponse(&linktrialv1.DeleteProfileResponse{}), nil
}

// unusedProfile refuses a radio profile that a saved plan or a node uses.
func (s *catalogs) unusedProfile(ctx context.Context, name string) error {
	plans, err := s.cfg.Library.Uses(ctx, name)
	if err != nil {
		return err
	}
	if len(plans) > 0 {
		return fmt.Errorf("radio %q %w by the plans %s: change or delete them first", name, catalog.ErrInUse, strings.Join(plans, ", "))
	}
	for _, n := range s.cfg.Engine.Nodes.List() {
		if n.Radio == name && n.Connected {
			return fmt.Errorf("radio %q %w by the node %s, whose agent names it", name, catalog.ErrInUse, n.Name)
		}
	}
	return nil
}

func (s *catalogs) states(ctx context.Context) (map[string]*linktrialv1.DriverState, error) {
	out := map[string]*linktrialv1.DriverState{}
	if s.cfg.Drivers == nil {
		return out, nil
	}
	all, err := s.cfg.Drivers.States(ctx)
	for _, d := range all {
		out[d.Name] = d
	}
	return out, err
}

func (s *catalogs) ListProtocols(ctx context.Context, _ *connect.Request[linktrialv1.ListProtocolsRequest]) (*connect.Response[linktrialv1.ListProtocolsResponse], error) {
	here, err := s.states(ctx)
	if err != nil {
		return nil, reply.Told(ctx, s.cfg.Logger, "list protocols", err)
	}
	rows, err := rpcdb.New(s.cfg.Store).ConformanceResults(ctx)
	if err != nil {
		return nil, s.fault(ctx, "list protocols", err)
	}
	checked := map[string]*linktrialv1.ConformanceResult{}
	for _, r := range rows {
		if checked[r.Driver], err = asConformance(&r); err != nil {
			return nil, s.fault(ctx, "list protocols", err)
		}
	}
	out := &linktrialv1.ListProtocolsResponse{}
	for _, name := range s.cfg.Catalog.Protocols() {
		b, err := json.Marshal(s.cfg.Catalog.Manifest(name))
		if err != nil {
			return nil, s.fault(ctx, "list protocols", err)
		}
		out.Protocols = append(out.Protocols, &linktrialv1.ProtocolInfo{Name: name, ManifestJson: string(b), Here: here[name], LastCheck: checked[name],
			File: filepath.Join(s.cfg.Catalog.DriverDir(name), driverfolder.Manifest)})
	}
	return connect.NewResponse(out), nil
}

// keptCheck is a check as the store has it.
type keptCheck struct {
	Name    string  `json:"name"`
	Outcome string  `json:"outcome"`
	Message string  `json:"message,omitempty"`
	Seconds float64 `json:"seconds"`
}

func asConformance(r *rpcdb.Conformance) (*linktrialv1.ConformanceResult, error) {
	var kept []keptCheck
	if err := json.Unmarshal(r.Checks, &kept); err != nil {
		return nil, fmt.Errorf("conformance result of %s: %w", r.Driver, err)
	}
	out := &linktrialv1.ConformanceResult{Version: r.Version, Sha256: r.Sha256, CheckedUnix: r.CheckedAt.Unix()}
	for _, k := range kept {
		addCheck(out, &linktrialv1.ConformanceCheck{Name: k.Name, Outcome: k.Outcome, Message: k.Message, Seconds: k.Seconds})
	}
	return out, nil
}

func addCheck(r *linktrialv1.ConformanceResult, c *linktrialv1.ConformanceCheck) {
	switch c.Outcome {
	case "passed":
		r.Passed++
	case "failed":
		r.Failed++
	default:
		r.Skipped++
	}
	r.Checks = append(r.Checks, c)
}

func (s *catalogs) CheckProtocol(ctx context.Context, req *connect.Request[linktrialv1.CheckProtocolRequest], stream *connect.ServerStream[linktrialv1.CheckProtocolResponse]) error {
	name := req.Msg.Name
	manifest := s.cfg.Catalog.Manifest(name)
	if manifest == nil {
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("no protocol %q; there are %s", name, strings.Join(s.cfg.Catalog.Protocols(), ", ")))
	}
	if s.cfg.Drivers == nil {
		return connect.NewError(connect.CodeFailedPrecondition, errors.New("this orchestrator was started without drivers to check"))
	}
	if err := s.begin(name); err != nil {
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	defer s.end()
	// The suite ends with the orchestrator, and with whoever looks on.
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-s.cfg.Engine.Stopping():
			cancel()
		case <-ctx.Done():
		}
	})
	defer watch.Wait()
	defer cancel()
	here, err := s.states(ctx)
	if err != nil {
		return reply.Told(ctx, s.cfg.Logger, "check protocol", err)
	}
	result := &linktrialv1.ConformanceResult{Version: manifest.Version}
	if d := here[name]; d != nil {
		result.Version, result.Sha256 = cmp.Or(d.Version, manifest.Version), d.Sha256
	}
	err = s.cfg.Drivers.Check(ctx, name, req.Msg.Quick, func(c *linktrialv1.ConformanceCheck, total int) {
		addCheck(result, c)
		if stream.Send(&linktrialv1.CheckProtocolResponse{Total: int32(total), Event: &linktrialv1.CheckProtocolResponse_Check{Check: c}}) != nil {
			cancel() // nobody listens any more
		}
	})
	if err != nil {
		return reply.Told(ctx, s.cfg.Logger, "check protocol", err)
	}
	at := time.Now()
	result.CheckedUnix = at.Unix()
	if !req.Msg.Quick { // the last result stays that of the whole suite
		if err := s.keep(ctx, name, at, result); err != nil {
			return s.fault(ctx, "check protocol", err)
		}
	}
	return stream.Send(&linktrialv1.CheckProtocolResponse{Total: int32(len(result.Checks)), Event: &linktrialv1.CheckProtocolResponse_Result{Result: result}})
}

// keep stores the result of a suite.
func (s *catalogs) keep(ctx context.Context, name string, at time.Time, result *linktrialv1.ConformanceResult) error {
	kept := make([]keptCheck, len(result.Checks))
	for i, c := range result.Checks {
		kept[i] = keptCheck{Name: c.Name, Outcome: c.Outcome, Message: strings.ReplaceAll(c.Message, "\x00", ""), Seconds: c.Seconds}
	}
	b, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return rpcdb.New(s.cfg.Store).KeepConformance(ctx, rpcdb.KeepConformanceParams{Driver: name, Version: result.Version, Sha256: result.Sha256, CheckedAt: at, Checks: b})
}

// begin sees to it that one suite runs at a time, and none beside a run: it
// would take processor time from a lab on this machine.
func (s *catalogs) begin(name string) error {
	if runs := s.cfg.Engine.Nodes.RunsUnderWay(); len(runs) > 0 {
		return fmt.Errorf("run %s is under way, and the suite would disturb it: wait for its end", strings.Join(runs, ", "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checking != "" {
		return fmt.Errorf("driver %s is being checked: wait for its end", s.checking)
	}
	s.checking = name
	return nil
}

func (s *catalogs) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checking = ""
}
