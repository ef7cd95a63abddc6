package access

// What tests in access_test need of the inside. They are in a package of their own
// because they call AccessService, which rpc/people answers.

const (
	SessionIdle  = sessionIdle
	SessionLife  = sessionLife
	APITokenLife = apiTokenLife
	UserBurst    = userBurst
	UserInterval = userInterval
	CodeBurst    = codeBurst
	APIPrefix    = apiPrefix
)

// NewTokenText is a token that no orchestrator has made.
func NewTokenText() string { return newSecret(tokenPrefix).text() }

// NewSetupTokenText is a setup token that no orchestrator has made.
func NewSetupTokenText() string { return newSecret(setupPrefix).text() }

// HashOf is what the database has of a token or of a session's cookie.
func HashOf(text string) ([]byte, error) {
	s, err := parseSecret(text, tokenPrefix, sessionPrefix)
	return s.hash(), err
}

// SetupPrincipal is who calls with the setup token.
func SetupPrincipal() Principal { return Principal{setup: true} }

// StreamUsers are the users of the streaming calls in progress.
func (a *Access) StreamUsers() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for s := range a.streams {
		out = append(out, s.who.User)
	}
	return out
}

// TakeCode reports whether a code of a user may be tried from an address now.
func (a *Access) TakeCode(user, address string) bool { return a.codes.take(user, address) == 0 }

// Rule is what the guard requires for a procedure.
type Rule struct {
	Known  bool // it is in the table
	People bool // people call it, who are logged in
	Least  Role
	Logged bool
	Enrols bool // also where a second factor is missing
	// Changes is set where a call changes something.
	Changes bool
}

// RuleOf is the rule of a procedure.
func RuleOf(service, method string) Rule {
	_, known := procedures[service][method]
	r := ruleOf(service, method)
	return Rule{Known: known, People: r.who == people, Least: r.least, Logged: r.logged, Enrols: r.enrols, Changes: r.changes()}
}

// Procedures is how many procedures the table has.
func Procedures() int {
	n := 0
	for _, methods := range procedures {
		n += len(methods)
	}
	return n
}

// LocalUsersOf are the users who may change something, by the user of sudo and of the login.
var LocalUsersOf = localUsers
