package people

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/inputfile"
)

// channelFlags are what can be set of a channel.
type channelFlags struct {
	url, host, security, user, from string
	to, kinds                       []string
	port                            int32
	secretFile                      string
	removeSecret, off, on           bool
}

func (f *channelFlags) common(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.kinds, "kinds", nil, "kinds of notifications that it is told, such as run-failed,waits-for-people (default: all)")
	cmd.Flags().StringVar(&f.secretFile, "secret-file", "", "file with the secret in its first line, - for standard input: of a webhook the key that signs what is sent, of e-mail the password")
}

func (f *channelFlags) webhook(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "url", "", "http or https URL that notifications are posted to")
}

func (f *channelFlags) email(cmd *cobra.Command, port int32, security string) {
	cmd.Flags().StringVar(&f.host, "host", "", "mail server")
	cmd.Flags().Int32Var(&f.port, "port", port, "port of the mail server")
	cmd.Flags().StringVar(&f.security, "security", security, "starttls, tls (from the first byte) or none")
	cmd.Flags().StringVar(&f.user, "user", "", "user at the mail server; its password comes from --secret-file")
	cmd.Flags().StringVar(&f.from, "from", "", "address of the sender")
	cmd.Flags().StringSliceVar(&f.to, "to", nil, "address of a recipient; can be given several times")
}

// maxChannelSecret is what an orchestrator takes, in bytes.
const maxChannelSecret = 4096

// secret reads the secret; without a file there is none.
func (f *channelFlags) secret(cmd *cobra.Command) (string, error) {
	var b []byte
	var err error
	switch f.secretFile {
	case "":
		return "", nil
	case "-":
		b, err = inputfile.ReadStream(cmd.InOrStdin(), "standard input", maxChannelSecret)
	default:
		b, err = inputfile.Read(f.secretFile, maxChannelSecret)
	}
	if err != nil {
		return "", fmt.Errorf("--secret-file: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", errors.New("--secret-file: its first line is empty, expected the secret there")
	}
	return line, nil
}

var mailSecurities = map[string]linktrialv1.MailSecurity{
	"starttls": linktrialv1.MailSecurity_MAIL_SECURITY_STARTTLS, "tls": linktrialv1.MailSecurity_MAIL_SECURITY_TLS, "none": linktrialv1.MailSecurity_MAIL_SECURITY_NONE,
}

func securityWord(m linktrialv1.MailSecurity) string {
	for word, x := range mailSecurities {
		if x == m {
			return word
		}
	}
	return "not known"
}

func parseSecurity(text string) (linktrialv1.MailSecurity, error) {
	if m, ok := mailSecurities[text]; ok {
		return m, nil
	}
	return 0, fmt.Errorf("--security: %q, expected starttls, tls or none", text)
}

// change puts what was given into a channel.
func (f *channelFlags) change(cmd *cobra.Command, c *linktrialv1.Channel) error {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	if given("kinds") {
		c.Kinds = f.kinds
	}
	c.Off = (c.Off || f.off) && !f.on
	w, e := c.GetWebhook(), c.GetEmail()
	for _, name := range []string{"host", "port", "security", "user", "from", "to"} {
		if given(name) && e == nil {
			return fmt.Errorf("--%s is of e-mail, and %q is a webhook: remove it and add another one", name, c.Name)
		}
	}
	if given("url") {
		if w == nil {
			return fmt.Errorf("--url is of webhooks, and %q is e-mail: remove it and add another one", c.Name)
		}
		w.Url = f.url
	}
	if given("security") {
		m, err := parseSecurity(f.security)
		if err != nil {
			return err
		}
		e.Security = m
	}
	if given("port") {
		e.Port = f.port
	}
	if given("to") {
		e.To = f.to
	}
	for _, x := range []struct {
		name string
		into func() *string
		text string
	}{{"host", func() *string { return &e.Host }, f.host}, {"user", func() *string { return &e.User }, f.user}, {"from", func() *string { return &e.From }, f.from}} {
		if given(x.name) {
			*x.into() = x.text
		}
	}
	return nil
}
