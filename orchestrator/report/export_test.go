package report

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
)

// Schema describes the JSON export as JSON Schema (draft 2020-12). A list is a list
// everywhere, never null, but for lists of a sheet: those are as its hash has them.
func Schema() (*jsonschema.Schema, error) {
	// Channels and networks may have others in them: they are defined once.
	type channelFields radio.Channel
	type networkFields radio.Network
	types := &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[radio.Channel]():   {Ref: "#/$defs/channel"},
		reflect.TypeFor[radio.Network]():   {Ref: "#/$defs/network"},

		reflect.TypeFor[telemetrysource.Source](): {Ref: "#/$defs/telemetry"},
	}}
	s, err := jsonschema.For[document](types)
	if err != nil {
		return nil, err
	}
	channel, err := jsonschema.For[channelFields](types)
	if err != nil {
		return nil, err
	}
	network, err := jsonschema.For[networkFields](types)
	if err != nil {
		return nil, err
	}
	telemetry, err := telemetrySchema()
	if err != nil {
		return nil, err
	}
	s.Defs = map[string]*jsonschema.Schema{"channel": channel, "network": network, "telemetry": telemetry}
	for _, part := range []*jsonschema.Schema{s, channel, network, telemetry} {
		asWritten(part, part != s)
	}
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "results.json of Linktrial"
	return s, nil
}

// telemetrySchema is a telemetry source with the keys of every kind.
func telemetrySchema() (*jsonschema.Schema, error) {
	type sourceFields telemetrysource.Source
	out, err := jsonschema.For[sourceFields](nil)
	if err != nil {
		return nil, err
	}
	add := func(to *jsonschema.Schema, key string, what *jsonschema.Schema) {
		if to.Properties[key] == nil {
			to.Properties[key], to.PropertyOrder = what, append(to.PropertyOrder, key)
		}
	}
	value := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, Required: []string{"name", "scale"}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	add(value, "name", &jsonschema.Schema{Type: "string"})
	for _, d := range telemetrysource.Kinds() {
		settings, err := jsonschema.ForType(reflect.TypeOf(d.NewSettings()).Elem(), nil)
		if err != nil {
			return nil, err
		}
		for _, key := range settings.PropertyOrder {
			add(out, key, settings.Properties[key])
		}
		if d.PlaceKey != "" {
			add(value, d.PlaceKey, &jsonschema.Schema{Type: "string"})
		}
	}
	add(value, "unit", &jsonschema.Schema{Type: "string"})
	add(value, "scale", &jsonschema.Schema{Type: "number"})
	add(value, "counter", &jsonschema.Schema{Type: "boolean"})
	add(out, "values", &jsonschema.Schema{Type: "array", Items: value})
	return out, nil
}

// asWritten takes null from the types of lists that no hash has, and makes seeds the
// texts that they are in JSON: 64 bits are more than many readers of numbers have.
func asWritten(s *jsonschema.Schema, hashed bool) {
	if s == nil {
		return
	}
	if s.Ref != "" && len(s.Types) > 0 {
		*s = jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Ref: s.Ref}, {Type: "null"}}}
	}
	if !hashed && slices.Contains(s.Types, "array") {
		s.Type, s.Types = "array", nil
	}
	if hashed && s.Type == "object" && s.AdditionalProperties != nil && s.Properties == nil {
		s.Type, s.Types = "", []string{"object", "null"}
	}
	for name, p := range s.Properties {
		if name == "seed" || strings.HasSuffix(name, "_seed") {
			*p = jsonschema.Schema{Type: "string", Pattern: "^[0-9]+$"}
		}
		asWritten(p, hashed || name == "sheet")
	}
	asWritten(s.Items, hashed)
	asWritten(s.AdditionalProperties, hashed)
}
