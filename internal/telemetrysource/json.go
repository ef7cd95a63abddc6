package telemetrysource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"linktrial/internal/yamldoc"
)

// plain is a source without its methods, so that it is encoded as it stands.
type plain Source

// unknown are the settings of a source whose kind this program does not know: what came is
// kept as it came.
type unknown struct{ fields map[string]json.RawMessage }

func (*unknown) parse(yamldoc.Mapping, *Source) {}

func (*unknown) way(s *Source) string { return "a source of kind " + string(s.Kind) }

func (*unknown) read(_ context.Context, s *Source, _ string, _ *Node) ([]Reading, error) {
	return nil, fmt.Errorf("a source of kind %q, which this agent does not know", s.Kind)
}

// MarshalJSON writes the source as one object: what all have, the settings, the values.
func (s Source) MarshalJSON() ([]byte, error) {
	if u, is := s.Settings.(*unknown); is {
		return joined(plain(s), u.fields)
	}
	parts := []any{plain(s)}
	if s.Settings != nil {
		parts = append(parts, s.Settings)
	}
	if len(s.Values) > 0 {
		d := Of(s.Kind)
		if d == nil {
			return nil, fmt.Errorf("telemetry source %q: no kind %q that could have values", s.Name, s.Kind)
		}
		values := make([]json.RawMessage, len(s.Values))
		for i, v := range s.Values {
			var err error
			if values[i], err = v.encode(d.PlaceKey); err != nil {
				return nil, err
			}
		}
		parts = append(parts, map[string]any{"values": values})
	}
	return joined(parts...)
}

// valueTail is what stands behind a value's name and place.
type valueTail struct {
	Unit    string  `json:"unit,omitempty"`
	Scale   float64 `json:"scale"`
	Counter bool    `json:"counter,omitempty"`
}

func (v *Value) encode(placeKey string) ([]byte, error) {
	place := map[string]string{}
	if v.Place != "" {
		place[placeKey] = v.Place
	}
	return joined(map[string]string{"name": v.Name}, place, valueTail{Unit: v.Unit, Scale: v.Scale, Counter: v.Counter})
}

// joined is the members of several objects as those of one, in their order.
func joined(objects ...any) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for _, o := range objects {
		b, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		members := bytes.TrimSuffix(bytes.TrimPrefix(b, []byte("{")), []byte("}"))
		if len(members) > 0 && out.Len() > 1 {
			out.WriteByte(',')
		}
		out.Write(members)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// commonKeys are the keys of [plain] and values.
var commonKeys = []string{"name", "kind", "on", "source", "poll", "interval_ns", "host", "port"}

// UnmarshalJSON reads what MarshalJSON writes. A key that the source's kind does not have is
// an error; a kind that is not known is none, and reading such a source is.
func (s *Source) UnmarshalJSON(b []byte) error {
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*s = Source(p)
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	maps.DeleteFunc(fields, func(key string, _ json.RawMessage) bool { return slices.Contains(commonKeys, key) })
	d := Of(s.Kind)
	if d == nil {
		s.Settings = &unknown{fields}
		return nil
	}
	if values, has := fields["values"]; has && d.PlaceKey != "" {
		delete(fields, "values")
		if err := s.decodeValues(values, d.PlaceKey); err != nil {
			return fmt.Errorf("telemetry source %q: %w", s.Name, err)
		}
	}
	s.Settings = d.settings()
	if err := decodeStrictly(fields, s.Settings); err != nil {
		return fmt.Errorf("telemetry source %q of kind %s: %w", s.Name, s.Kind, err)
	}
	return nil
}

func (s *Source) decodeValues(b []byte, placeKey string) error {
	var all []map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	for _, fields := range all {
		var v Value
		for key, to := range map[string]*string{"name": &v.Name, placeKey: &v.Place} {
			if b, has := fields[key]; has {
				if err := json.Unmarshal(b, to); err != nil {
					return err
				}
				delete(fields, key)
			}
		}
		var t valueTail
		if err := decodeStrictly(fields, &t); err != nil {
			return err
		}
		v.Unit, v.Scale, v.Counter = t.Unit, t.Scale, t.Counter
		s.Values = append(s.Values, v)
	}
	return nil
}

func decodeStrictly(fields map[string]json.RawMessage, to any) error {
	b, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode(to)
}
