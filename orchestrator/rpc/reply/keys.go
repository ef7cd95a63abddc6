package reply

import (
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/signature"
)

// SigningKeys are the keys that sign run sheets, as agents and people get them.
func SigningKeys(keys []signature.Endorsed) []*linktrialv1.SigningKey {
	out := make([]*linktrialv1.SigningKey, len(keys))
	for i, k := range keys {
		out[i] = &linktrialv1.SigningKey{PublicKey: k.Key[:], EndorsedBy: k.By, Endorsement: k.Endorsement}
	}
	return out
}
