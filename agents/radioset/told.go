package radioset

import (
	"context"

	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// Look reads the interfaces, and reports whether they are others than the orchestrator has.
func (k *Keeper) Look(ctx context.Context) (news bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for _, s := range k.radios() {
		names = append(names, s.Interface)
	}
	all, err := k.list.list(ctx, names)
	if err != nil {
		k.log.Warn("interfaces cannot be listed", "error", err)
		return false
	}
	k.last = all
	return !proto.Equal(k.last, k.sent)
}

// All are the interfaces as they were when it looked last.
func (k *Keeper) All() *linktrialv1.InterfaceList {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// News are the interfaces where the orchestrator has others; nil: it has these.
func (k *Keeper) News() *linktrialv1.InterfaceList {
	k.mu.Lock()
	defer k.mu.Unlock()
	if proto.Equal(k.last, k.sent) {
		return nil
	}
	return k.last
}

// Has notes which interfaces the orchestrator has.
func (k *Keeper) Has(all *linktrialv1.InterfaceList) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if all != nil {
		k.sent = all
	}
}
