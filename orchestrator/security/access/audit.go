package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"linktrial/internal/auditchain"
	"linktrial/internal/unit"
)

// Outcomes of what people asked for.
const (
	outcomeDone    = "done"
	outcomeRefused = "refused" // nothing has changed
	outcomeFailed  = "failed"  // something may have changed
)

// entry is what the audit log will hear of a call.
type entry struct {
	user, via, address, action, detail string
	outcome, message                   string
	// anonymous is of a procedure that takes no login: what it is refused is bounded.
	anonymous bool
	skip      bool // only counted
}

// notTold is of a call whose handler did not return.
const notTold = "how it ended was not reported"

func newEntry(p Principal, c *call, service, method string) *entry {
	return &entry{user: p.User, via: p.Via, address: c.address, action: service + "." + method,
		outcome: outcomeFailed, message: notTold}
}

// keep adds an entry to the log. What was done stays done where that fails;
// the orchestrator's own log has it then.
func (a *Access) keep(ctx context.Context, e *entry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditWriteTimeout)
	defer cancel()
	x := auditchain.Entry{At: a.now(), User: e.user, Via: clean(e.via), Address: clean(e.address), Action: clean(e.action), Detail: clean(e.detail), Outcome: e.outcome, Message: shortened(clean(e.message), maxDetail)}
	var err error
	switch {
	case e.skip:
		a.audit.Count(ctx, x.Action, x.Address)
	case e.anonymous && e.outcome != outcomeDone:
		err = a.audit.KeepAnonymous(ctx, x)
	default:
		err = a.audit.Keep(ctx, x)
	}
	if err != nil {
		a.log.Error("the audit log could not be written", "user", e.user, "via", e.via, "address", e.address, "action", e.action, "detail", e.detail, "outcome", e.outcome, "error", err)
	}
}

// outcomeOf puts how a call ended into the log's words.
func outcomeOf(err error) (outcome, message string) {
	if err == nil {
		return outcomeDone, ""
	}
	message = err.Error()
	var coded *connect.Error
	if errors.As(err, &coded) {
		message = coded.Message()
	}
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument, connect.CodeNotFound, connect.CodeAlreadyExists, connect.CodePermissionDenied, connect.CodeResourceExhausted,
		connect.CodeFailedPrecondition, connect.CodeOutOfRange, connect.CodeUnimplemented, connect.CodeUnauthenticated:
		return outcomeRefused, message
	}
	return outcomeFailed, message
}

// Interceptor tells the audit log what calls are about and how they end, and
// puts who is logged in into the field "by" of messages that have one. A
// stream ends with what it was allowed by. Every service that people call is
// mounted with it.
func (a *Access) Interceptor() connect.Interceptor { return interceptor{a} }

type interceptor struct{ a *Access }

func (i interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (i interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		m, ok := req.Any().(proto.Message)
		if ok {
			sign(ctx, m)
		}
		e := callOf(ctx).entry
		if e == nil {
			return next(ctx, req)
		}
		if ok {
			e.detail = describe(m)
		}
		e.outcome, e.message = outcomeFailed, notTold
		res, err := next(ctx, req)
		refusal := e.message // of [Note]
		e.outcome, e.message = outcomeOf(err)
		if err == nil {
			if m, ok := res.Any().(proto.Message); ok {
				e.add(m)
			}
			if refusal != notTold {
				e.outcome, e.message = outcomeRefused, refusal
			}
		}
		return res, err
	}
}

// Note tells the audit log of a call what neither its request nor its answer says openly:
// what it is about, and why nothing was done; an empty refusal: something was.
func Note(ctx context.Context, detail, refusal string) {
	e := callOf(ctx).entry
	if e == nil {
		return
	}
	e.detail = shortened(clean(detail), maxDetail)
	if refusal != "" {
		e.message = refusal
	}
}

func (i interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if p, ok := From(ctx); ok && p.User != "" {
			var done func()
			ctx, done = i.a.follow(ctx, p)
			defer done()
		}
		e := callOf(ctx).entry
		if e == nil {
			return next(ctx, conn)
		}
		err := next(ctx, &listener{StreamingHandlerConn: conn, entry: e})
		e.outcome, e.message = outcomeOf(err)
		return err
	}
}

// listener hears the first message of a stream, which says what it is about.
type listener struct {
	connect.StreamingHandlerConn
	entry *entry
}

func (l *listener) Receive(m any) error {
	err := l.StreamingHandlerConn.Receive(m)
	if p, ok := m.(proto.Message); ok && err == nil && l.entry.detail == "" {
		l.entry.detail = describe(p)
	}
	return err
}

// sign says in a message whose word it is: not whoever the caller names.
func sign(ctx context.Context, m proto.Message) {
	p, ok := From(ctx)
	if !ok || p.signature() == "" {
		return
	}
	r := m.ProtoReflect()
	if f := r.Descriptor().Fields().ByName("by"); f != nil && f.Kind() == protoreflect.StringKind && !f.IsList() {
		r.Set(f, protoreflect.ValueOfString(p.signature()))
	}
}

// add takes from an answer what the log wants to know of it: what was made, or
// that nothing was.
func (e *entry) add(m proto.Message) {
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	if f := fields.ByName("campaign_id"); f != nil && f.Kind() == protoreflect.StringKind && r.Has(f) {
		e.detail = strings.TrimSpace(e.detail + " campaign=" + r.Get(f).String())
	}
	if f := fields.ByName("code_needed"); f != nil && f.Kind() == protoreflect.BoolKind && r.Get(f).Bool() {
		e.outcome, e.message = outcomeRefused, "the password is right, and a code is needed besides"
	}
	if f := fields.ByName("problems"); f != nil && f.IsList() && r.Has(f) {
		n := r.Get(f).List().Len()
		e.outcome, e.message = outcomeRefused, fmt.Sprintf("%d problems", n)
		if n == 1 {
			e.message = "1 problem"
		}
	}
}

const (
	maxDetail = 500 // characters
	maxValue  = 120
)

// describe tells a request in a line, without its secrets.
func describe(m proto.Message) string {
	r := m.ProtoReflect()
	var words []string
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !r.Has(f) || f.Name() == "by" || hidden(f) {
			continue
		}
		words = append(words, string(f.Name())+"="+value(f, r.Get(f)))
	}
	return shortened(strings.Join(words, " "), maxDetail)
}

// hidden says that a field's value is nobody's business.
func hidden(f protoreflect.FieldDescriptor) bool {
	if o, ok := f.Options().(*descriptorpb.FieldOptions); ok && o.GetDebugRedact() {
		return true
	}
	if f.Kind() != protoreflect.StringKind && f.Kind() != protoreflect.BytesKind {
		return false
	}
	switch f.Name() {
	case "password", "token", "secret", "key":
		return true
	}
	return false
}

func value(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch {
	case f.IsMap():
		return fmt.Sprintf("(%d entries)", v.Map().Len())
	case f.IsList() && f.Kind() == protoreflect.StringKind:
		var all []string
		for i := range v.List().Len() {
			all = append(all, v.List().Get(i).String())
		}
		return quoted(strings.Join(all, ","))
	case f.IsList():
		return fmt.Sprintf("(%d)", v.List().Len())
	case f.Kind() == protoreflect.StringKind:
		return quoted(v.String())
	case f.Kind() == protoreflect.BytesKind:
		return unit.FormatBytes(int64(len(v.Bytes())))
	case f.Kind() == protoreflect.EnumKind:
		if d := f.Enum().Values().ByNumber(v.Enum()); d != nil {
			prefix := strings.ToUpper(string(f.Enum().Name())) + "_"
			return strings.ToLower(strings.TrimPrefix(string(d.Name()), prefix))
		}
		return fmt.Sprint(v.Enum())
	case f.Kind() == protoreflect.MessageKind:
		if t, ok := v.Message().Interface().(*timestamppb.Timestamp); ok {
			return t.AsTime().Format(time.RFC3339)
		}
		return "(…)"
	}
	return fmt.Sprint(v.Interface())
}

func quoted(s string) string {
	s = shortened(clean(s), maxValue)
	if s == "" || strings.ContainsAny(s, " =\"") {
		return `"` + strings.ReplaceAll(s, `"`, `'`) + `"`
	}
	return s
}

// clean has one line of text that a database takes.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, unicode.IsControl(r), !unicode.IsPrint(r) && r != ' ':
			return ' '
		}
		return r
	}, s)
}

func shortened(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
