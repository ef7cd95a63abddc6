package access

import (
	"fmt"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

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

func (r Role) message() linktrialv1.Role { return linktrialv1.Role(r) }

// roleOf reads the API's role; unspecified is [None].
func roleOf(m linktrialv1.Role) (Role, error) {
	if m < linktrialv1.Role_ROLE_UNSPECIFIED || m > linktrialv1.Role_ROLE_ADMIN {
		return None, fmt.Errorf("role %d, expected viewer (1), director (2) or admin (3)", m)
	}
	return Role(m), nil
}
