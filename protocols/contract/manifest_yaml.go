package contract

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"

	"linktrial/internal/driverdigest"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
)

var optionTypes = []string{string(TypeString), string(TypeInt), string(TypeNumber), string(TypeBool), string(TypeSize), string(TypeDuration)}

const minMemory = 6 << 20

var optionForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

// ParseManifest reads driver.yaml. The error, if any, is [yamldoc.Problems].
func ParseManifest(file string, data []byte) (*Manifest, error) {
	d := yamldoc.Parse(file, data)
	r := d.Root().Mapping("name", "title", "summary", "version", "contract", "kind", "command", "files", "image", "roles", "options", "features", "capabilities", "resources", "kernel", "external", "network")
	m := &Manifest{
		Name:     r.Field("name").Required().String(""),
		Title:    r.Field("title").Required().Label(""),
		Summary:  r.Field("summary").Required().String(""),
		Version:  r.Field("version").Required().Label(""),
		Contract: int(r.Field("contract").Required().Int(Version, 1, 1000)),
		Kind:     DriverKind(r.Field("kind").OneOf(string(KindTransfers), string(KindTransfers), string(KindProbe))),
		Image:    r.Field("image").String(""),
		Kernel:   r.Field("kernel").String(""),
		External: r.Field("external").Label(""),
		Network:  r.Field("network").Required().OneOf("", "tcp", "udp", "sctp"),
	}
	if f := r.Field("name"); f.Present() && !ValidName(m.Name) {
		f.Problem("%q, expected lower-case letters, digits and hyphens, at most 32", m.Name)
	}
	if f := r.Field("contract"); f.Present() && m.Contract != Version {
		f.Problem("%d, this Linktrial speaks version %d: clients read the payload from standard input after the document, and servers write to standard output what arrived (driver contract, %q)", m.Contract, Version, "From version 1")
	}
	for _, v := range r.Field("command").Required().List() {
		m.Command = append(m.Command, v.String(""))
	}
	if f := r.Field("command"); f.IsList() && (len(m.Command) == 0 || m.Command[0] == "") {
		f.Problem("expected the program and its arguments, found an empty list")
	}
	m.readFiles(r.Field("files"))
	m.readRoles(r.Field("roles"))
	for _, v := range r.Field("capabilities").List() {
		c := v.String("")
		if !strings.HasPrefix(c, "CAP_") {
			v.Problem("expected a Linux capability such as CAP_NET_ADMIN, found %q", c)
		}
		m.Capabilities = append(m.Capabilities, c)
	}
	for _, v := range r.Field("features").List() {
		m.Features = append(m.Features, Feature(v.OneOf("", string(FeatureDuration), string(FeatureDSCP), string(FeatureFromServer))))
	}
	if f := r.Field("features"); m.Has(FeatureDuration) && !m.Plays(RoleClient) {
		f.Problem("%s is a feature of client and server, which are not among the roles", FeatureDuration)
	}
	if m.Kind == KindProbe && len(m.Roles) > 0 && (!m.Plays(RoleClient) || m.Plays(RoleRelay)) {
		r.Field("roles").Problem("a driver of kind %s has client and server alone", KindProbe)
	}
	if m.Kind == KindProbe && m.Has(FeatureDuration) {
		r.Field("features").Problem("%s is a feature of transfers; every probe can end after a time", FeatureDuration)
	}
	if m.Kind == KindTransfers && r.Field("kind").OK() && m.Has(FeatureFromServer) {
		r.Field("features").Problem("%s is a feature of probes; every transfer goes from client to server", FeatureFromServer)
	}
	rm := r.Field("resources").Mapping("memory", "cpus", "processes")
	if v := rm.Field("memory"); v.Present() {
		// Below 6 MiB the engine starts no container.
		if m.Resources.MemoryBytes = v.Bytes(0); m.Resources.MemoryBytes < minMemory {
			v.Problem("expected %s or more, found %s", unit.FormatBytes(minMemory), unit.FormatBytes(m.Resources.MemoryBytes))
		}
	}
	m.Resources.CPUs = rm.Field("cpus").Float(0, 0.01, 1024)
	m.Resources.Processes = rm.Field("processes").Int(0, 1, 1<<22)
	om := r.Field("options").Mapping()
	for _, name := range om.Keys() {
		m.Options = append(m.Options, parseOption(om, name))
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return m, nil
}

// readRoles reads the list of roles. A client needs a server of the same driver.
func (m *Manifest) readRoles(f yamldoc.Value) {
	if !f.Present() {
		return
	}
	for _, v := range f.List() {
		role := Role(v.OneOf("", string(RoleClient), string(RoleServer), string(RoleRelay)))
		if slices.Contains(m.Roles, role) {
			v.Problem("%s is there twice", role)
		}
		m.Roles = append(m.Roles, role)
	}
	switch {
	case !f.OK():
	case len(m.Roles) == 0:
		f.Problem("expected client and server, relay, or all three, found an empty list")
	case slices.Contains(m.Roles, RoleClient) != slices.Contains(m.Roles, RoleServer):
		f.Problem("expected client and server together, found one of them alone")
	}
}

// readFiles reads the list of the driver's files, which must have the program.
func (m *Manifest) readFiles(f yamldoc.Value) {
	if !f.Present() {
		return
	}
	for _, v := range f.List() {
		name := v.String("")
		if clean := path.Clean(name); name == "" || clean == "." || path.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../") {
			v.Problem("expected a file or folder in the driver's folder, found %q", name)
		}
		m.Files = append(m.Files, name)
	}
	if f.IsList() && len(m.Files) == 0 {
		f.Problem("expected the files that make the driver, found an empty list; leave files out to have all of the folder")
		return
	}
	if len(m.Command) == 0 {
		return
	}
	if p := m.Command[0]; strings.Contains(p, "/") && !path.IsAbs(p) && !driverdigest.Listed(m.Files, p) {
		f.Problem("the list lacks the program %s of command: the driver's digest would not cover it", p)
	}
}

func parseOption(om yamldoc.Mapping, name string) Option {
	if !optionForm.MatchString(name) {
		om.Key(name).Problem("option name %q, expected lower-case letters, digits and underscores", name)
	}
	f := om.Field(name).Mapping("type", "default", "help", "choices", "from_node", "min", "max")
	o := Option{
		Name:     name,
		Type:     OptionType(f.Field("type").Required().OneOf(string(TypeString), optionTypes...)),
		Help:     f.Field("help").Required().String(""),
		FromNode: f.Field("from_node").Bool(false),
	}
	for _, c := range f.Field("choices").List() {
		o.Choices = append(o.Choices, c.String(""))
	}
	if o.Type != TypeString && (len(o.Choices) > 0 || o.FromNode) {
		f.Field("type").Problem("only a string option has choices, found %s", o.Type)
	}
	if f.Field("type").Present() && !f.Field("type").OK() {
		return o // what its values may be is not known
	}
	o.Min, o.Max = o.bound(f.Field("min")), o.bound(f.Field("max"))
	if o.Min != nil && o.Max != nil && *o.Min > *o.Max {
		f.Field("max").Problem("below min, no value would do")
		o.Min, o.Max = nil, nil
	}
	if v := f.Field("default"); v.Present() && (len(o.Choices) == 0 || f.Field("choices").OK()) {
		o.Default = o.Read(v)
	}
	return o
}

func (o *Option) bound(v yamldoc.Value) *float64 {
	if !v.Present() {
		return nil
	}
	var b float64
	switch o.Type {
	case TypeSize:
		b = float64(v.Bytes(0))
	case TypeDuration:
		b = v.Duration(0).Seconds() * 1e3
	case TypeInt, TypeNumber:
		b = v.Float(0, -1e18, 1e18)
	default:
		v.Problem("a %s option has no bounds", o.Type)
		return nil
	}
	if !v.OK() {
		return nil
	}
	return &b
}

// Read takes an option's value from a plan (or a default from a manifest) and
// returns it as the driver will see it: string, bool, int64 or float64. What
// is wrong is noted on the value's document.
func (o *Option) Read(v yamldoc.Value) any {
	lo, hi := math.Inf(-1), math.Inf(1)
	if o.Min != nil {
		lo = *o.Min
	}
	if o.Max != nil {
		hi = *o.Max
	}
	inside := func(f float64, shown string) {
		if f < lo || f > hi {
			v.Problem("expected %s, found %s", o.rangeText(), shown)
		}
	}
	switch o.Type {
	case TypeInt:
		n := v.Int(0, math.MinInt64, math.MaxInt64)
		inside(float64(n), fmt.Sprint(n))
		return n
	case TypeNumber:
		f := v.Float(0, -math.MaxFloat64, math.MaxFloat64)
		inside(f, fmt.Sprint(f))
		return f
	case TypeBool:
		return v.Bool(false)
	case TypeSize:
		n := v.Bytes(0)
		inside(float64(n), unit.FormatBytes(n))
		return n
	case TypeDuration:
		ms := v.Duration(0).Seconds() * 1e3
		inside(ms, fmt.Sprintf("%gms", ms))
		return ms
	default:
		if len(o.Choices) > 0 {
			return v.OneOf("", o.Choices...)
		}
		return v.String("")
	}
}

// ReadOptions takes a treatment's options from a plan: declared ones only,
// each of its type, defaults filled in.
func (m *Manifest) ReadOptions(v yamldoc.Value) map[string]any {
	out := map[string]any{}
	names := make([]string, len(m.Options))
	for i, o := range m.Options {
		names[i] = o.Name
		if o.Default != nil {
			out[o.Name] = o.Default
		}
	}
	sort.Strings(names)
	om := v.Mapping()
	for _, key := range om.Keys() {
		i := slices.IndexFunc(m.Options, func(o Option) bool { return o.Name == key })
		if i < 0 {
			there := "it has none"
			if len(names) > 0 {
				there = "there are " + strings.Join(names, ", ")
			}
			om.Key(key).Problem("protocol %s has no option %q%s; %s", m.Name, key, yamldoc.Suggest(key, names), there)
			continue
		}
		out[key] = m.Options[i].Read(om.Field(key))
	}
	return out
}
