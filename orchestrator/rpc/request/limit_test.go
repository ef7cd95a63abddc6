package request

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "linktrial/api/gen/linktrial/v1"
)

// Somebody has decided for each procedure how large its requests may be.
func TestEveryProcedureHasALimit(t *testing.T) {
	known := map[string]bool{}
	protoregistry.GlobalFiles.RangeFilesByPackage("linktrial.v1", func(d protoreflect.FileDescriptor) bool {
		for i := range d.Services().Len() {
			s := d.Services().Get(i)
			for j := range s.Methods().Len() {
				m := s.Methods().Get(j)
				known[string(s.Name())+"/"+string(m.Name())] = true
				if _, ok := limits[string(s.Name())][string(m.Name())]; !ok {
					t.Errorf("%s.%s is not in the table of limit.go: say there how many bytes its request may have", s.Name(), m.Name())
				}
				if least := largest(m.Input(), 0); least > Limit("/"+string(s.FullName())+"/"+string(m.Name())) {
					t.Errorf("%s.%s: the texts that its request may have are %d bytes together, more than its limit", s.Name(), m.Name(), least)
				}
			}
		}
		return true
	})
	if len(known) < 50 {
		t.Fatalf("%d procedures were found", len(known))
	}
	for service, methods := range limits {
		for method := range methods {
			if !known[service+"/"+method] {
				t.Errorf("the table names %s.%s, which the API does not have", service, method)
			}
		}
	}
	if got := Limit("/linktrial.v1.OperatorService/Forgotten"); got != usualLimit {
		t.Errorf("a procedure that nobody listed may have %d bytes", got)
	}
}

// largest is the sum of what the single texts of a message may have, in bytes: a request
// that the check of texts would take must not be refused for its length. Lists have bounds
// of their own, which no request comes near.
func largest(d protoreflect.MessageDescriptor, depth int) int {
	bounds := map[kind]int{line: maxLine, text: maxText, secret: maxSecret, report: maxReport}
	sum := 0
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		switch {
		case f.IsList(), f.IsMap():
		case f.Kind() == protoreflect.StringKind:
			sum += bounds[kindOf(f)]
		case f.Message() != nil && depth < 5:
			sum += largest(f.Message(), depth+1)
		}
	}
	return sum
}
