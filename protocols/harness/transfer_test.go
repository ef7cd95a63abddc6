package harness

import (
	"bytes"
	"context"
	"testing"

	"linktrial/protocols/contract"
)

func TestTransfers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	l, port := open(t)
	so, sc := (&stage{listener: l}).begin(t, ctx, parameters(contract.RoleServer, port, 0, ""))
	so.await(contract.KindReady, "")
	for i, size := range []int64{0, 1, chunk - 1, chunk, chunk + 1, 8<<20 + 3} {
		p := parameters(contract.RoleClient, port, size, id(i+1))
		co, cc := (&stage{}).begin(t, t.Context(), p)
		if c := exit(t, cc); c != contract.ExitOK {
			t.Fatalf("%d bytes: exit code %d, events %+v", size, c, co.events)
		}
		r, s := co.await(contract.KindResult, p.Transfer.ID).Result, so.await(contract.KindResult, p.Transfer.ID).Result
		if !bytes.Equal(so.payload(p.Transfer.ID), testPayload(size)) || r.SizeBytes != size || s.SizeBytes != size || r.Final.SentBytes != size || s.Final.SentBytes != size {
			t.Errorf("%d bytes: client %+v, server %+v", size, r, s)
		}
		if r.Final.AckedBytes == nil || *r.Final.AckedBytes != size {
			t.Errorf("%d bytes: acknowledged %v", size, r.Final.AckedBytes)
		}
		for _, e := range co.events {
			if e.Sample != nil && (*e.Sample.AckedBytes > e.Sample.SentBytes || *e.Sample.AckedBytes < 0) {
				t.Errorf("%d of %d bytes acknowledged", *e.Sample.AckedBytes, e.Sample.SentBytes)
			}
		}
		if last := co.events[len(co.events)-2]; last.Event != contract.KindSample || last.Sample.ElapsedNS != r.Final.ElapsedNS {
			t.Errorf("the event before the result is %+v, expected the final sample", last)
		}
	}
	stop()
	if c := exit(t, sc); c != contract.ExitOK {
		t.Errorf("server: exit code %d", c)
	}
}
