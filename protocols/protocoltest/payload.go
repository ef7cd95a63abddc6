package protocoltest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"

	"linktrial/internal/payload"
	"linktrial/protocols/contract"
)

// source is the payload of a transfer: a client gets it on standard input, and nobody
// else can know it.
func (s *suite) source(transfer string, size int64) *payload.Source {
	sum := sha256.Sum256(append([]byte(transfer), s.secret...))
	return payload.NewSource(payload.Key(sum[:len(payload.Key{})]), size)
}

// input is the standard input of a driver with a document: what follows it is the payload
// of a client's transfer, as far as the document says of which.
func (s *suite) input(role contract.Role, document []byte) io.Reader {
	var p struct {
		Transfer struct {
			ID   string `json:"id"`
			Size int64  `json:"size_bytes"`
		} `json:"transfer"`
	}
	if role != contract.RoleClient || s.probes() || json.Unmarshal(document, &p) != nil || p.Transfer.Size <= 0 {
		return payload.Input(document, nil)
	}
	return payload.Input(document, s.source(p.Transfer.ID, p.Transfer.Size))
}

// probes reports whether the driver carries probes, and no transfers.
func (s *suite) probes() bool {
	return s.target.Manifest != nil && s.target.Manifest.Kind == contract.KindProbe
}

// take notes a block that a process has handed over.
func (p *proc) take(transfer string, b []byte) {
	h := p.handed[transfer]
	if h == nil {
		h = &payload.Arrived{}
		p.handed[transfer] = h
	}
	h.Add(b)
}

// arrived is what a process has handed over of a transfer so far.
func (p *proc) arrived(transfer string) (size int64, digest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.handed[transfer]
	if h == nil {
		h = &payload.Arrived{}
	}
	return h.Bytes, h.Digest()
}

// counts holds what a server says that it has of a transfer against what it has handed
// over by then. It is called with the process's lock held.
func (p *proc) counts(e *contract.Event) error {
	if p.role != contract.RoleServer || p.probe || e.Transfer == "" {
		return nil
	}
	size := int64(0)
	if h := p.handed[e.Transfer]; h != nil {
		size = h.Bytes
	}
	switch {
	case e.Sample != nil && e.Sample.SentBytes > size:
		return fmt.Errorf("a sample of %d bytes, and %d of payload were handed over before it", e.Sample.SentBytes, size)
	case e.Result != nil && e.Result.SizeBytes != size:
		return fmt.Errorf("a result of %d bytes, and %d of payload were handed over before it", e.Result.SizeBytes, size)
	}
	return nil
}
