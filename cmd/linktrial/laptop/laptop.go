package laptop

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/installation"
	"linktrial/internal/identity"
	"linktrial/internal/inputfile"
	"linktrial/internal/radiomark"
	"linktrial/internal/unit"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/authority"
)

// laptop is this machine, as the commands see it.
type laptop struct {
	machine *installation.Machine
	out     io.Writer
	euid    int
	// orchestratorLimit and agentLimit bound the waits of a start; the first is that of the
	// unit, for a database that a new version brings up to date.
	orchestratorLimit, agentLimit time.Duration
	// pause is how long it waits between two questions.
	pause time.Duration
	// leastFree is the free disk space, in bytes, without which a first start is refused.
	leastFree int64
}

func own() *laptop {
	return &laptop{machine: installation.Own(), out: os.Stdout, euid: os.Geteuid(), orchestratorLimit: 15 * time.Minute, agentLimit: 2 * time.Minute, pause: 200 * time.Millisecond, leastFree: installation.MinFreeBytes}
}

func (l *laptop) printf(format string, a ...any) { fmt.Fprintf(l.out, format, a...) }

// trust has the calls of this process trust the orchestrator of this machine, and use its
// local token.
func (l *laptop) trust() { client.Trusted.Packaged = l.machine.OrchestratorData() }

// calls are those to the orchestrator of this machine.
type calls struct {
	base     string
	operator linktrialv1connect.OperatorServiceClient
	nodes    linktrialv1connect.NodeServiceClient
	join     linktrialv1connect.JoinServiceClient
}

func (l *laptop) calls(base string) *calls {
	l.trust()
	h := client.HTTP()
	return &calls{base: base, operator: client.New(base), nodes: linktrialv1connect.NewNodeServiceClient(h, base, connect.WithGRPC()), join: linktrialv1connect.NewJoinServiceClient(h, base, connect.WithGRPC())}
}

// node returns a node by its name; nil: it never registered.
func (c *calls) node(ctx context.Context, name string) (*linktrialv1.Node, error) {
	res, err := c.operator.ListNodes(ctx, connect.NewRequest(&linktrialv1.ListNodesRequest{}))
	if err != nil {
		return nil, client.Error(c.base, err)
	}
	for _, n := range res.Msg.Nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return nil, nil
}

// underWay returns the runs that have not ended.
func (c *calls) underWay(ctx context.Context) (out []*linktrialv1.Run, err error) {
	res, err := c.operator.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{Limit: 50}))
	if err != nil {
		return nil, client.Error(c.base, err)
	}
	for _, r := range res.Msg.Runs {
		if !terminal.Over(r.State) {
			out = append(out, r)
		}
	}
	return out, nil
}

// addresses returns the URLs of the pages, that of this machine last, but for those of
// radios: the interface that is named, and those that were set up.
func addresses(base, radio string) ([]string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() || u.Scheme == "http" {
		return []string{base}, nil // it listens on one address
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("addresses of this machine: %w", err)
	}
	var out []string
	for _, i := range interfaces {
		if i.Name == radio || i.Flags&net.FlagUp == 0 || radiomark.On(i) {
			continue
		}
		all, err := i.Addrs()
		if err != nil {
			continue // the interface has just gone
		}
		for _, a := range all {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				out = append(out, u.Scheme+"://"+net.JoinHostPort(n.IP.String(), u.Port()))
			}
		}
	}
	return append(out, base), nil
}

// welcome returns the link with which the first admin is made; empty: there is one.
func (l *laptop) welcome(page string) (string, error) {
	b, err := inputfile.Read(filepath.Join(l.machine.OrchestratorData(), access.SetupFile), 1<<10)
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("setup token: %w", err)
	}
	return page + "/welcome#" + strings.TrimSpace(string(b)), nil
}

// fingerprint returns that of the authority that signs the pages' certificate; empty: the
// orchestrator has none, because only this machine reaches it.
func (l *laptop) fingerprint() (string, error) {
	path := filepath.Join(l.machine.OrchestratorData(), authority.Folder, "ca.crt")
	b, err := inputfile.Read(path, 1<<16)
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("the orchestrator's authority: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return "", fmt.Errorf("%s: expected a CERTIFICATE in PEM, found none", path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return identity.FormatFingerprint(identity.Fingerprint(cert)), nil
}

// since says since when a service runs.
func since(u *installation.Unit) string {
	if u.Since.IsZero() {
		return ""
	}
	return ", since " + unit.Moment(u.Since)
}

// littleFree refuses a first start where the disk has too little free space. Where this
// laptop has been started before it returns what to warn of: who stays out of its pages and
// gets no code cannot make room there.
func (l *laptop) littleFree(base string, before *installation.State) (*installation.LittleFree, error) {
	err := l.machine.CheckFree(l.leastFree)
	var little *installation.LittleFree
	if !errors.As(err, &little) {
		return nil, err
	}
	a, is, agentErr := l.machine.Agent()
	if agentErr != nil {
		return nil, agentErr
	}
	if before.Orchestrator.Running() || is && sameOrchestrator(a.Orchestrator, base) {
		return little, nil
	}
	return nil, err
}
