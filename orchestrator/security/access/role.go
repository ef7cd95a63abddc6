package access

import "fmt"

// Role is what a person may do; each may what the one before may.
type Role int

// The roles, in order.
const (
	None Role = iota
	Viewer
	Director
	Admin
)

var roleNames = [...]string{None: "none", Viewer: "viewer", Director: "director", Admin: "admin"}

func (r Role) String() string {
	if r < None || r > Admin {
		return fmt.Sprintf("role %d", int(r))
	}
	return roleNames[r]
}

// ParseRole reads viewer, director or admin.
func ParseRole(text string) (Role, error) {
	for r := Viewer; r <= Admin; r++ {
		if text == roleNames[r] {
			return r, nil
		}
	}
	return None, fmt.Errorf("role %q, expected viewer, director or admin", text)
}

// CheckRole reads the number of a role, as the API has it; 0 is [None].
func CheckRole(n int) (Role, error) {
	if n < int(None) || n > int(Admin) {
		return None, refuse(Invalid, "role %d, expected viewer (1), director (2) or admin (3)", n)
	}
	return Role(n), nil
}
