package run

// Supervisor is the record of the process that owns a run, in supervisor.json
// and on its standard output before "go".
type Supervisor struct {
	Process
	API     string `json:"api"`     // "http://127.0.0.1:PORT", the same for the supervisor's whole life
	Token   string `json:"token"`   // path of the token's file
	Version string `json:"version"` // of stoke-trainer
}

// ReadSupervisor reads supervisor.json.
func (f Folder) ReadSupervisor() (Supervisor, error) {
	var s Supervisor
	err := ReadJSON(f.Supervisor(), &s)
	return s, err
}

// Go is the line that makes a waiting supervisor start its roles.
const Go = "go"
