package run

import (
	"fmt"
	"path/filepath"
	"time"
)

// What a role's process does.
const (
	RoleRunning = "running"
	RoleWaiting = "waiting" // to be started again
	RoleEnded   = "ended"
	RoleGivenUp = "given up"
)

// Role is what the supervisor records of one role's processes, in roles.json.
type Role struct {
	Name     string    `json:"name"` // see RoleName
	Phase    string    `json:"phase"`
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since"`            // when the process was started, or ended
	Reason   string    `json:"reason,omitempty"` // of its last end
}

// RoleName is what people call a role: worker-1, ps-0, coordinator.
func RoleName(role string, index int) string {
	if role == "worker" || role == "ps" {
		return fmt.Sprintf("%s-%d", role, index)
	}
	return role
}

// Roles is the file in which the supervisor records its processes.
func (f Folder) Roles() string { return filepath.Join(string(f), "roles.json") }

// ReadRoles reads which processes the run has, or had. Runs of the first
// version did not record them.
func (f Folder) ReadRoles() ([]Role, error) {
	var r []Role
	err := ReadJSON(f.Roles(), &r)
	return r, err
}
