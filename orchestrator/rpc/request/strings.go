// Package request checks the texts of requests before any handler gets them.
// Comes in: the messages of api/proto. Goes out: the same message, or an error
// that names the field.
package request

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// kind is what a text of a request is, which decides what it may hold.
type kind int

const (
	// line is an identity, a name, a choice: one line without control characters.
	line kind = iota
	// text may have several lines.
	text
	// passage is a text of several paragraphs, whose handler bounds its characters.
	passage
	// secret is hashed and never stored or shown: only its length is bounded.
	secret
	// report is what an agent found in files and in the output of programs. It is
	// cleaned and cut, not refused: a node must not be shut out for what its kernel
	// or a driver writes.
	report
)

// Bounds of a text in bytes, and of a list of texts in elements.
const (
	maxLine    = 1000
	maxText    = 10_000
	maxPassage = 40_000 // a character has up to four bytes
	maxSecret  = 4096
	maxReport  = 16 << 10
	maxList    = 1000
)

// kinds has every field that is not a [line], by its full name without the package.
var kinds = map[protoreflect.FullName]kind{
	"AbortRunRequest.reason": text, "AbortCampaignRequest.reason": text, "ExcludeAttemptRequest.reason": text,
	"ApproveDriverRequest.reason": text, "RevokeNodeRequest.reason": text,
	"SetWordsRequest.summary": passage, "SetWordsRequest.remarks": passage,

	"DeliverRequest.statement_signature": text, // in the lines of its armour

	"LoginRequest.password": secret, "ChangePasswordRequest.current": secret, "ChangePasswordRequest.password": secret,
	"AddUserRequest.password": secret, "BeginSecondFactorRequest.password": secret, "SetUserPasswordRequest.password": secret,
	"SaveChannelRequest.secret": secret, // sealed; never shown

	"RegisterRequest.host": report, "RegisterRequest.kernel": report,
	"DriverState.version": report, "DriverState.implementation": report, "DriverState.unsupported": report, "DriverState.choices": report,
	"Check.found": report, "Check.expected": report, "Check.meaning": report, "Check.remedy": report,
	"RadioState.text": report, "RadioState.fixed": report, "InterfacePoint.text": report,
	"NodeInterface.name": report, "NodeInterface.driver": report, "NodeInterface.bus": report, "NodeInterface.configured_by": report,
	"NodeFault.text": report, "TelemetryState.error": report, "TelemetryState.source": report, "TelemetryReading.name": report, "TelemetryReading.unit": report,
}

const apiPackage = "linktrial.v1."

func kindOf(f protoreflect.FieldDescriptor) kind {
	return kinds[protoreflect.FullName(strings.TrimPrefix(string(f.FullName()), apiPackage))]
}

// Strings returns the interceptor that checks every text of every request, nested
// ones included. PostgreSQL stores no NUL, and terminals obey control characters.
func Strings() connect.Interceptor { return checker{} }

type checker struct{}

func (checker) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if err := Check(req.Any()); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

func (checker) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (checker) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, receiver{conn})
	}
}

// receiver checks what a stream receives.
type receiver struct{ connect.StreamingHandlerConn }

func (r receiver) Receive(m any) error {
	if err := r.StreamingHandlerConn.Receive(m); err != nil {
		return err
	}
	return Check(m)
}

// Check returns the problem of a request's texts as callers get it. [Strings] calls it of every
// request of a service.
func Check(m any) error {
	p, ok := m.(proto.Message)
	if !ok {
		return nil
	}
	if err := message(p.ProtoReflect(), ""); err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	return nil
}

// message checks a message and those in it; path is where it is in the request.
func message(m protoreflect.Message, path string) (err error) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := path + string(f.Name())
		switch {
		case f.IsMap():
			err = mapField(m, f, v.Map(), name)
		case f.IsList():
			err = listField(f, v.List(), name)
		case f.Kind() == protoreflect.StringKind:
			var clean string
			if clean, err = one(kindOf(f), name, v.String()); err == nil && clean != v.String() {
				m.Set(f, protoreflect.ValueOfString(clean))
			}
		case f.Kind() == protoreflect.MessageKind:
			err = message(v.Message(), name+".")
		}
		return err == nil
	})
	return err
}

func listField(f protoreflect.FieldDescriptor, list protoreflect.List, name string) error {
	switch f.Kind() {
	case protoreflect.StringKind:
		if list.Len() > maxList {
			return fmt.Errorf("%s has %d elements, expected at most %d", name, list.Len(), maxList)
		}
		for i := range list.Len() {
			clean, err := one(kindOf(f), fmt.Sprintf("%s[%d]", name, i), list.Get(i).String())
			if err != nil {
				return err
			}
			list.Set(i, protoreflect.ValueOfString(clean))
		}
	case protoreflect.MessageKind:
		for i := range list.Len() {
			if err := message(list.Get(i).Message(), fmt.Sprintf("%s[%d].", name, i)); err != nil {
				return err
			}
		}
	default: // numbers and bytes
	}
	return nil
}

func mapField(m protoreflect.Message, f protoreflect.FieldDescriptor, entries protoreflect.Map, name string) error {
	if entries.Len() > maxList {
		return fmt.Errorf("%s has %d elements, expected at most %d", name, entries.Len(), maxList)
	}
	if f.MapKey().Kind() != protoreflect.StringKind || f.MapValue().Kind() != protoreflect.StringKind {
		return nil
	}
	clean := m.NewField(f)
	var err error
	entries.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		var key, value string
		if key, err = one(kindOf(f), name, k.String()); err != nil {
			return false
		}
		if value, err = one(kindOf(f), name+"."+key, v.String()); err != nil {
			return false
		}
		clean.Map().Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(value))
		return true
	})
	if err == nil {
		m.Set(f, clean)
	}
	return err
}

// one checks one text. It returns the text that the handler gets.
func one(k kind, name, s string) (string, error) {
	bound := 0
	switch k {
	case line:
		bound = maxLine
	case text:
		bound = maxText
	case passage:
		bound = maxPassage
	case secret:
		bound = maxSecret
	}
	switch {
	case k == report:
		return Clean(s, maxReport), nil
	case len(s) > bound:
		return "", fmt.Errorf("%s has %d bytes, expected at most %d", name, len(s), bound)
	case k == secret:
		return s, nil
	case !utf8.ValidString(s):
		return "", fmt.Errorf("%s is not valid UTF-8", name)
	}
	for i, r := range s {
		if unicode.IsControl(r) && (k != text && k != passage || !strings.ContainsRune("\n\t\r", r)) {
			return "", fmt.Errorf("%s has the control character %U at byte %d: expected text without control characters", name, r, i)
		}
	}
	return s, nil
}

// Clean returns a text of at most most bytes in which every control character but
// a line break and a tab is U+FFFD.
func Clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	cut := most - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
