package radiolink

import (
	"context"
	"fmt"
	"net"
	"os"

	"linktrial/internal/radiocontrol"
	"linktrial/internal/radiocontrol/client"
	"linktrial/internal/signature"
)

// Vouch asks the emulator with the control socket at path for its lab's proof of s. The
// lab has its public key beside the socket; an answer that is signed with another one is
// an error. It says where this process and its radio's interface are as the kernel has
// it, so that the emulator refuses one that is elsewhere. It blocks until the emulator
// has answered, or ctx ends.
func Vouch(ctx context.Context, path, device string, s signature.LabStatement) (signature.LabProof, error) {
	key, err := client.LabKey(path)
	if err != nil {
		return signature.LabProof{}, err
	}
	v := radiocontrol.Vouch{Statement: s}
	if v.Namespace, err = os.Readlink("/proc/self/ns/net"); err != nil {
		return signature.LabProof{}, fmt.Errorf("network namespace: %w", err)
	}
	i, err := net.InterfaceByName(device)
	if err != nil {
		return signature.LabProof{}, fmt.Errorf("interface %q: %w", device, err)
	}
	v.Interface = i.Index
	c, err := client.Dial(path)
	if err != nil {
		return signature.LabProof{}, err
	}
	defer func() { _ = c.Close() }() // the answer is there, or none comes
	p, err := c.Vouch(ctx, v)
	if err != nil {
		return signature.LabProof{}, err
	}
	signed, err := signature.VerifyLab(s, p)
	if err == nil && signed != key {
		err = fmt.Errorf("the emulator at %s signs for lab %s, and this node is in lab %s", path, signed.ID(), key.ID())
	}
	return p, err
}
