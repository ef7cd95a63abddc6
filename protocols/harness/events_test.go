package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"linktrial/protocols/contract"
)

func TestLongMessagesAndBadSamples(t *testing.T) {
	var b bytes.Buffer
	log := new(bytes.Buffer)
	r := &events{w: &b, log: newLogger(log)}
	r.fail("", contract.CodeInternal, errors.New(strings.Repeat("é", contract.MaxLine)+"\xff"))
	r.write(&contract.Event{Event: contract.KindSample, Transfer: id(1), Sample: &contract.Sample{More: map[string]float64{"x": math.NaN()}}})
	r.write(&contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: strings.Repeat("x", contract.MaxLine)}})
	sc := bufio.NewScanner(&b)
	sc.Buffer(nil, 2*contract.MaxLine)
	var kinds []contract.Kind
	for sc.Scan() {
		e, err := contract.ParseEvent(sc.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Event)
	}
	if fmt.Sprint(kinds) != "[error error]" || strings.Count(log.String(), "event cannot be written") != 2 {
		t.Errorf("%v, log %s", kinds, log)
	}
}
