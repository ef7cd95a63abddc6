package plan_test

import (
	"reflect"
	"testing"

	"linktrial/orchestrator/plan"
)

func TestLack(t *testing.T) {
	const text = `name: lack
radio: mpu4
topology: k-lot
size: 64 KiB
treatments:
  - {name: a, label: Plain, protocol: tcp}
  - {name: b, label: Other, protocol: tcp, options: {congestion: westwood}}
mixes:
  - name: both
    flows: [{treatment: a}, {treatment: b}]
groups:
  - name: one
    sweep: [{name: buffer, set: option.receive_buffer, values: [8 KiB, 16 KiB]}]
    treatments: [a, b]
  - {name: two, treatments: [a, both]}
iterations: 2
seed: 7
`
	parse := func() *plan.Plan {
		p, err := plan.Parse(nil, "p.yaml", []byte(text), testCatalog(t))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	reason := "the kernel of client has no congestion control westwood"
	lacks := map[string]string{"b": reason}

	p := parse()
	if why := p.MarkUnavailable([]map[string]string{nil, {}, nil}); why != nil || !reflect.DeepEqual(p, parse()) {
		t.Errorf("nothing lacks, and yet: %q, %s", why, p.Summary())
	}

	p = parse()
	why := p.MarkUnavailable([]map[string]string{nil, lacks, nil})
	if want := []string{"treatment b: " + reason}; !reflect.DeepEqual(why, want) {
		t.Errorf("got %q, expected %q", why, want)
	}
	for i, want := range [][]string{{"a", "b"}, {"a"}, {"a", "both"}} {
		if got := p.Cells[i].Runnable(); !reflect.DeepEqual(got, want) {
			t.Errorf("cell %d runs %q, expected %q", i, got, want)
		}
	}
	if m := p.Missing(); m != nil {
		t.Errorf("missing from the whole plan: %q, and one cell has it", m)
	}

	p = parse()
	p.MarkUnavailable([]map[string]string{lacks, lacks, lacks})
	if got := p.Missing(); !reflect.DeepEqual(got, []string{"b", "both"}) {
		t.Errorf("missing %q", got)
	}
	if m := p.Cells[2].Mixes[0].Missing; m != "Other is missing: "+reason {
		t.Errorf("the mix is missing because %q", m)
	}
	if n := p.Trials(); n != 6 {
		t.Errorf("%d trials, expected 6", n)
	}
}
