package installation

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
)

// The units of a machine, and its files and folders below [Machine.Root].
const (
	OrchestratorUnit = "linktrial-orchestrator.service"
	AgentUnit        = "linktrial-agent.service"

	orchestratorFile = "/etc/linktrial/orchestrator.env"
	agentFile        = "/etc/linktrial/agent.env"
	tokenFile        = "/etc/linktrial/token"
	program          = "/usr/bin/linktrial"

	// OrchestratorData is the data folder of the orchestrator, AgentData that of the agent.
	OrchestratorData = "/var/lib/linktrial-orchestrator"
	AgentData        = "/var/lib/linktrial"
)

// DefaultListen is where an orchestrator listens whose file says nothing else.
const DefaultListen = "0.0.0.0:7700"

// OrchestratorSettings is how the orchestrator of this machine is started.
type OrchestratorSettings struct {
	Listen string // HOST:PORT; empty: as the file says, else [DefaultListen]
}

// AgentSettings is what the node of this machine is.
type AgentSettings struct {
	Orchestrator string // URL
	Name         string // of the node
	Role         string // client, relay or server; empty: none yet, without a radio
	RadioAddress string // on the radio network; empty: no radio is set up
	Device       string // the radio's interface
	Radio        string // profile; empty: the radio has no name
	// Token enrols the node; it gets into a file that the agent alone reads. Empty: the
	// node has a certificate.
	Token string
}

// The keys of the files, which the units name.
const (
	keyListen       = "LINKTRIAL_LISTEN"
	keyOrchestrator = "LINKTRIAL_ORCHESTRATOR"
	keyNode         = "LINKTRIAL_NODE"
	keyRole         = "LINKTRIAL_ROLE"
	keyRadioAddress = "LINKTRIAL_RADIO_ADDRESS"
	keyDevice       = "LINKTRIAL_DEVICE"
	keyOptions      = "LINKTRIAL_OPTIONS"
)

// at is where a file or folder is.
func (m *Machine) at(path string) string { return filepath.Join("/", m.Root, path) }

// OrchestratorData returns the data folder of this machine's orchestrator.
func (m *Machine) OrchestratorData() string { return m.at(OrchestratorData) }

// NodeState returns the state folder of a node of this machine.
func (m *Machine) NodeState(name string) string {
	return m.at(filepath.Join(AgentData, "agents", name))
}

// Listen returns where the orchestrator listens or would.
func (m *Machine) Listen() (string, error) {
	f, _, err := readEnvFile(m.at(orchestratorFile))
	if err != nil {
		return "", err
	}
	if v, ok := f.get(keyListen); ok && v != "" {
		return v, nil
	}
	return DefaultListen, nil
}

// LocalURL returns the URL at which commands on this machine reach its orchestrator. It has
// TLS where 'linktrial serve' uses it: on an address that other machines reach, without
// --open, or with --tls.
func (m *Machine) LocalURL() (string, error) {
	listen, err := m.Listen()
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("%s: %s=%s, expected HOST:PORT such as %s", m.at(orchestratorFile), keyListen, listen, DefaultListen)
	}
	f, _, err := readEnvFile(m.at(orchestratorFile))
	if err != nil {
		return "", err
	}
	_, words, err := options(&f, m.at(orchestratorFile))
	if err != nil {
		return "", err
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	if host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "https"
	if slices.Contains(words, "--open") || loopback && !slices.Contains(words, "--tls") {
		scheme = "http"
	}
	return scheme + "://" + net.JoinHostPort(host, port), nil
}

// Agent returns what the node of this machine is, without its token; ok is false where
// nothing has made it one.
func (m *Machine) Agent() (s AgentSettings, ok bool, err error) {
	f, there, err := readEnvFile(m.at(agentFile))
	if err != nil || !there {
		return s, false, err
	}
	_, words, err := options(&f, m.at(agentFile))
	if err != nil {
		return s, false, err
	}
	s.Radio, _ = option(words, "--radio")
	for key, field := range s.fields() {
		*field, _ = f.get(key)
	}
	return s, s.Name != "", nil
}

// fields are those that have a key of their own.
func (s *AgentSettings) fields() map[string]*string {
	return map[string]*string{keyOrchestrator: &s.Orchestrator, keyNode: &s.Name, keyRole: &s.Role, keyRadioAddress: &s.RadioAddress, keyDevice: &s.Device}
}

// options are the flags of a file, as a text and as words.
func options(f *envFile, path string) (text string, words []string, err error) {
	text, _ = f.get(keyOptions)
	if words, err = splitOptions(text); err != nil {
		return "", nil, fmt.Errorf("%s: %s: %w", path, keyOptions, err)
	}
	return text, words, nil
}

// put puts the settings into a file. Lines and flags that are not theirs stay.
func (s *AgentSettings) put(f *envFile, path string) error {
	_, words, err := options(f, path)
	if err != nil {
		return err
	}
	_, words = option(words, "--radio")
	_, words = option(words, "--token-file")
	if s.Radio != "" {
		words = append(words, "--radio="+s.Radio)
	}
	if s.Token != "" {
		words = append(words, "--token-file="+tokenFile)
	}
	// In this order where the file is new.
	for _, key := range []string{keyOrchestrator, keyNode, keyRole, keyRadioAddress, keyDevice} {
		value := *s.fields()[key]
		if value == "" {
			f.unset(key)
			continue
		}
		if err := f.set(key, value); err != nil {
			return err
		}
	}
	if len(words) == 0 {
		f.unset(keyOptions)
		return nil
	}
	return f.set(keyOptions, joinOptions(words))
}
