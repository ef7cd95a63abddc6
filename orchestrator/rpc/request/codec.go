package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"linktrial/orchestrator/report/wording"
)

// Options returns the options of every service: its requests are of bounded length
// ([Limit]), they are decoded with errors that people can read, and their texts are
// checked.
func Options() []connect.HandlerOption {
	return []connect.HandlerOption{connect.WithCodec(binaryCodec{}), connect.WithCodec(jsonCodec{"json"}), connect.WithCodec(jsonCodec{"json; charset=utf-8"}),
		connect.WithInterceptors(Strings()), limited()}
}

// binaryCodec and jsonCodec are those of connect but for the text of their errors,
// which names Go types.
type binaryCodec struct{}

func (binaryCodec) Name() string   { return "proto" }
func (binaryCodec) IsBinary() bool { return true }

func (binaryCodec) Marshal(m any) ([]byte, error) { return binaryCodec{}.MarshalAppend(nil, m) }

func (binaryCodec) MarshalAppend(dst []byte, m any) ([]byte, error) {
	p, err := asMessage(m)
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{}.MarshalAppend(dst, p)
}

func (binaryCodec) MarshalStable(m any) ([]byte, error) {
	p, err := asMessage(m)
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(p)
}

func (binaryCodec) Unmarshal(b []byte, m any) error {
	p, err := asMessage(m)
	if err != nil {
		return err
	}
	return invalid(p, proto.Unmarshal(b, p))
}

type jsonCodec struct{ name string }

func (c jsonCodec) Name() string { return c.name }
func (jsonCodec) IsBinary() bool { return false }

func (c jsonCodec) Marshal(m any) ([]byte, error) { return c.MarshalAppend(nil, m) }

func (jsonCodec) MarshalAppend(dst []byte, m any) ([]byte, error) {
	p, err := asMessage(m)
	if err != nil {
		return nil, err
	}
	return protojson.MarshalOptions{}.MarshalAppend(dst, p)
}

// MarshalStable removes the white space that protojson varies on purpose.
func (c jsonCodec) MarshalStable(m any) ([]byte, error) {
	b, err := c.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Compact(&out, b)
	return out.Bytes(), err
}

// Unmarshal ignores fields that this version does not know: clients need not be of
// the same version.
func (jsonCodec) Unmarshal(b []byte, m any) error {
	p, err := asMessage(m)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return invalid(p, errors.New("it is empty, expected {}"))
	}
	return invalid(p, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, p))
}

func asMessage(m any) (proto.Message, error) {
	p, ok := m.(proto.Message)
	if !ok {
		return nil, errors.New("not a message of the API")
	}
	return p, nil
}

// maxInvalid is the longest text of an encoding error, in characters: protojson repeats
// what it could not read, such as a number of any length.
const maxInvalid = 500

// invalid says of an encoding error what was expected. protobuf varies the space in
// its own prefix on purpose.
func invalid(m proto.Message, err error) error {
	if err == nil {
		return nil
	}
	text := strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
	text = strings.ReplaceAll(text, "unexpected EOF", "it ends too soon") // of proto and protojson
	return fmt.Errorf("the request is not a valid %s: %s", m.ProtoReflect().Descriptor().Name(), wording.Clip(text, maxInvalid))
}
