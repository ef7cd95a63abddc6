package telemetrysource

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A profile gets only those variables of the agent's environment that its technician
// has listed; the error says so, and names no value.
func TestOnlyListedSecrets(t *testing.T) {
	t.Setenv("RADIO_COMMUNITY", "field")
	t.Setenv("LINKTRIAL_TOKEN", "ltp_secret")
	dial := func(name string) (string, error) {
		g, err := dialSNMP(t.Context(), &SNMPAccess{Version: "2c", CommunityEnv: name}, "127.0.0.1", 161, new(Node).secret)
		if err != nil {
			return "", err
		}
		return g.Community, nil
	}
	_, err := dial("RADIO_COMMUNITY")
	require.ErrorContains(t, err, "LINKTRIAL_RADIO_SECRETS lists")
	t.Setenv(SecretsVariable, "OTHER, RADIO_COMMUNITY")
	community, err := dial("RADIO_COMMUNITY")
	require.NoError(t, err)
	require.Equal(t, "field", community)
	_, err = dial("LINKTRIAL_TOKEN")
	require.ErrorContains(t, err, "LINKTRIAL_TOKEN")
	require.NotContains(t, err.Error(), "ltp_secret")
}
