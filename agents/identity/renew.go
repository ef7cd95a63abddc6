package identity

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/identity"
)

// maxFormer bounds the former keys that still count: a renewal ends connections at once.
const maxFormer = 2

// Renew gets a certificate for a new key, over a connection that shows the
// present one, and keeps both. Where an error is returned, nothing has changed.
// Connections that are open go on showing the old one.
func (i *Identity) Renew(ctx context.Context, h connect.HTTPClient, base string) error {
	key, err := newKey()
	if err != nil {
		return fmt.Errorf("key of the node: %w", err)
	}
	name := i.Name()
	csr, err := request(key, name)
	if err != nil {
		return fmt.Errorf("certificate request: %w", err)
	}
	res, err := linktrialv1connect.NewEnrolmentServiceClient(h, base, connect.WithGRPC()).Renew(ctx, connect.NewRequest(&linktrialv1.RenewRequest{Name: name, Csr: csr}))
	if err != nil {
		return err
	}
	n := &Identity{dir: i.dir, now: i.now, key: key}
	i.mu.Lock()
	defer i.mu.Unlock()
	n.authority = i.authority // what is trusted does not change on the way
	if err := n.accept(res.Msg.Certificate, name); err != nil {
		return err
	}
	if !n.cert.NotAfter.After(i.cert.NotAfter) {
		return errors.New("the orchestrator's answer: a certificate that ends no later than the present one")
	}
	if err := n.write(); err != nil {
		return err
	}
	i.former = append(i.former, identity.KeyHash(i.cert))
	if len(i.former) > maxFormer {
		i.former = i.former[1:]
	}
	i.key, i.cert = n.key, n.cert
	return nil
}
