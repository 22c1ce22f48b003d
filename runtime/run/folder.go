package run

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/spec"
)

// Folder is the absolute path of a run's folder. Everything in it is made by
// Create or by the run's own processes.
type Folder string

// The places in a run's folder.
func (f Folder) Spec() string        { return filepath.Join(string(f), "spec.json") }
func (f Folder) StatusFile() string  { return filepath.Join(string(f), "status.json") }
func (f Folder) Supervisor() string  { return filepath.Join(string(f), "supervisor.json") }
func (f Folder) Token() string       { return filepath.Join(string(f), "token") }
func (f Folder) Endpoints() string   { return filepath.Join(string(f), "endpoints.json") }
func (f Folder) Lock() string        { return filepath.Join(string(f), "lock") }
func (f Folder) Metrics() string     { return filepath.Join(string(f), "metrics.jsonl") }
func (f Folder) Ledger() string      { return filepath.Join(string(f), "ledger") }
func (f Folder) Logs() string        { return filepath.Join(string(f), "logs") }
func (f Folder) Checkpoints() string { return filepath.Join(string(f), "checkpoints") }

// Agent is the folder of an agent of a program, such as worker-0.
func (f Folder) Agent(name string) string { return filepath.Join(string(f), name) }

// Code is the archive of the program's code: the snapshot with that hash.
func (f Folder) Code(hash string) string {
	return filepath.Join(string(f), codePrefix+hash[:min(16, len(hash))]+codeSuffix)
}

const codePrefix, codeSuffix = "code-", ".tar"

// RemoveCode removes the archives of code, except the one with that hash.
func (f Folder) RemoveCode(except string) error {
	entries, err := os.ReadDir(string(f))
	for _, e := range entries {
		path := filepath.Join(string(f), e.Name())
		if strings.HasPrefix(e.Name(), codePrefix) && strings.HasSuffix(e.Name(), codeSuffix) && path != f.Code(except) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// Log is the standard error of a role (coordinator, ps, worker, supervisor).
func (f Folder) Log(role string, index int) string {
	return filepath.Join(f.Logs(), fmt.Sprintf("%s-%d.log", role, index))
}

// Output is the standard output of a role. Runs of the first version have both
// in Log.
func (f Folder) Output(role string, index int) string {
	return filepath.Join(f.Logs(), fmt.Sprintf("%s-%d.out", role, index))
}

// Name identifies the run to people.
func (f Folder) Name() string { return filepath.Base(string(f)) }

// Create makes the folder of a new run: the spec, a fresh token, a pending
// status. A folder that already holds a run with the same Hash is left as it
// is, but for the spec; one that holds anything else is an error. Parents are
// made as needed; everything is readable by the owner only.
func (f Folder) Create(s spec.Spec) error {
	if problems := s.Validate(); len(problems) > 0 {
		return fmt.Errorf("create run: %w", problems[0])
	}
	if !filepath.IsAbs(string(f)) {
		return fmt.Errorf("create run: folder %q is not absolute", string(f))
	}
	if err := os.MkdirAll(f.Logs(), 0o700); err != nil {
		return fmt.Errorf("create run: %w", err)
	}
	if err := os.MkdirAll(f.Checkpoints(), 0o700); err != nil {
		return fmt.Errorf("create run: %w", err)
	}
	switch old, err := f.ReadSpec(); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("create run: %w", err)
	case old.Hash() != s.Hash():
		return fmt.Errorf("create run: %s already holds another run", string(f))
	}
	if _, err := os.Lstat(f.Token()); errors.Is(err, fs.ErrNotExist) {
		var secret [32]byte
		rand.Read(secret[:]) // never fails
		if err := WriteFile(f.Token(), []byte(hex.EncodeToString(secret[:])+"\n")); err != nil {
			return fmt.Errorf("create run: %w", err)
		}
	}
	if _, err := os.Lstat(f.StatusFile()); errors.Is(err, fs.ErrNotExist) {
		pending := spec.Status{Run: f.Name(), Hash: s.Hash(), Phase: spec.Pending, Epochs: s.Epochs, Wanted: s.Worker.Replicas, Evaluated: -1}
		if err := WriteJSON(f.StatusFile(), pending); err != nil {
			return fmt.Errorf("create run: %w", err)
		}
	}
	return f.WriteSpec(s) // last: a folder with a spec is whole
}

// WriteSpec replaces the spec of the same run, and records the change.
func (f Folder) WriteSpec(s spec.Spec) error {
	if old, err := f.ReadSpec(); err == nil {
		changes := spec.Compare(old, s)
		note := spec.LastChange{At: time.Now(), Class: spec.Costliest(changes).String()}
		for _, c := range changes {
			note.Fields = append(note.Fields, c.Field)
		}
		if len(changes) > 0 {
			if err := WriteJSON(f.change(), note); err != nil {
				return err
			}
		}
	}
	return WriteJSON(f.Spec(), s)
}

func (f Folder) change() string { return filepath.Join(string(f), "change.json") }

// ReadChange reads the newest change of the spec; nil without a change, or where an earlier
// version did not record it.
func (f Folder) ReadChange() *spec.LastChange {
	var c spec.LastChange
	if ReadJSON(f.change(), &c) != nil {
		return nil
	}
	return &c
}

// ReadSpec reads and validates the spec.
func (f Folder) ReadSpec() (spec.Spec, error) { return ReadSpec(f.Spec()) }

// ReadSpec reads and validates a spec in a file.
func ReadSpec(path string) (spec.Spec, error) {
	s := spec.Default()
	if err := ReadJSON(path, &s); err != nil {
		return spec.Spec{}, err
	}
	if problems := s.Validate(); len(problems) > 0 {
		return spec.Spec{}, fmt.Errorf("read %s: %w", path, problems[0])
	}
	return s, nil
}

// ReadToken reads the secret that every connection of the run presents.
func (f Folder) ReadToken() (string, error) { return ReadToken(f.Token()) }

// ReadToken reads a run's token from a file.
func ReadToken(path string) (string, error) {
	data, err := readFile(path)
	if err != nil {
		return "", err
	}
	return CheckToken(string(data), path)
}

// CheckToken gives the token that a text from somewhere holds.
func CheckToken(text, where string) (string, error) {
	token := strings.TrimSpace(text)
	if len(token) < 32 {
		return "", fmt.Errorf("read %s: token is shorter than 32 characters", where)
	}
	return token, nil
}

// Status reads how the run stands, as its files tell; a run whose supervisor
// is gone without a final status is Lost. The API has fresher numbers while
// the run lives.
func (f Folder) Status() (spec.Status, error) {
	// Read the supervisor's state first: if it ends between the two reads, its
	// final status is already written.
	sup, err := f.ReadSupervisor()
	gone := err != nil || !sup.Alive()
	var s spec.Status
	if err := ReadJSON(f.StatusFile(), &s); err != nil {
		return spec.Status{}, err
	}
	if gone && !s.Phase.Final() && (s.Phase != spec.Pending || err == nil) {
		s.Phase, s.Message = spec.Lost, "the run's supervisor is gone; starting it again resumes from the newest checkpoint"
	}
	return s, nil
}

// ReadEndpoints reads where the roles of the run listen.
func (f Folder) ReadEndpoints() (spec.Endpoints, error) {
	var e spec.Endpoints
	err := ReadJSON(f.Endpoints(), &e)
	return e, err
}

// Client makes a client for the run's present supervisor.
func (f Folder) Client() (*api.Client, error) {
	sup, err := f.ReadSupervisor()
	if err != nil {
		return nil, err
	}
	token, err := f.ReadToken()
	if err != nil {
		return nil, err
	}
	return api.New(sup.API, token, nil), nil
}
