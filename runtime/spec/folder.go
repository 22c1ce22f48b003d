package spec

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Folder is the absolute path of a run's folder. Everything in it is made by
// Create or by the run's own processes.
type Folder string

// The places in a run's folder.
func (f Folder) Spec() string        { return filepath.Join(string(f), "spec.json") }
func (f Folder) StatusFile() string  { return filepath.Join(string(f), "status.json") }
func (f Folder) Supervisor() string  { return filepath.Join(string(f), "supervisor.json") }
func (f Folder) Token() string       { return filepath.Join(string(f), "token") }
func (f Folder) Lock() string        { return filepath.Join(string(f), "lock") }
func (f Folder) Metrics() string     { return filepath.Join(string(f), "metrics.jsonl") }
func (f Folder) Logs() string        { return filepath.Join(string(f), "logs") }
func (f Folder) Checkpoints() string { return filepath.Join(string(f), "checkpoints") }

// Final is the folder of the finished model.
func (f Folder) Final() string { return filepath.Join(f.Checkpoints(), "final") }

// Log is where a role (coordinator, ps, worker, supervisor) writes.
func (f Folder) Log(role string, index int) string {
	return filepath.Join(f.Logs(), fmt.Sprintf("%s-%d.log", role, index))
}

// Applied is where a parameter server notes every update that it applied, by
// itself: one Event of type update per line.
func (f Folder) Applied(index int) string {
	return filepath.Join(f.Logs(), fmt.Sprintf("applied-%d.jsonl", index))
}

// Name identifies the run to people.
func (f Folder) Name() string { return filepath.Base(string(f)) }

// Create makes the folder of a new run: the spec, a fresh token, a pending
// status. A folder that already holds a run with the same Hash is left as it
// is, but for the spec; one that holds anything else is an error. Parents are
// made as needed; everything is readable by the owner only.
func (f Folder) Create(s Spec) error {
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
		pending := Status{Run: f.Name(), Hash: s.Hash(), Phase: Pending, Epochs: s.Epochs, Wanted: s.Worker.Replicas, Evaluated: -1}
		if err := WriteJSON(f.StatusFile(), pending); err != nil {
			return fmt.Errorf("create run: %w", err)
		}
	}
	return f.WriteSpec(s) // last: a folder with a spec is whole
}

// WriteSpec replaces the spec, for changes that are no new run.
func (f Folder) WriteSpec(s Spec) error { return WriteJSON(f.Spec(), s) }

// ReadSpec reads and validates the spec.
func (f Folder) ReadSpec() (Spec, error) {
	s := Default()
	if err := ReadJSON(f.Spec(), &s); err != nil {
		return Spec{}, err
	}
	if problems := s.Validate(); len(problems) > 0 {
		return Spec{}, fmt.Errorf("read %s: %w", f.Spec(), problems[0])
	}
	return s, nil
}

// ReadToken reads the secret that every connection of the run presents.
func (f Folder) ReadToken() (string, error) {
	data, err := readFile(f.Token())
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if len(token) < 32 {
		return "", fmt.Errorf("read %s: token is shorter than 32 characters", f.Token())
	}
	return token, nil
}

// Status reads how the run stands, as its files tell; a run whose supervisor
// is gone without a final status is Lost. The API has fresher numbers while
// the run lives.
func (f Folder) Status() (Status, error) {
	// The supervisor is looked at first: one that ends between the two reads
	// has written its final status by then.
	sup, err := f.ReadSupervisor()
	gone := err != nil || !sup.Alive()
	var s Status
	if err := ReadJSON(f.StatusFile(), &s); err != nil {
		return Status{}, err
	}
	if gone && !s.Phase.Final() && (s.Phase != Pending || err == nil) {
		s.Phase, s.Message = Lost, "the run's supervisor is gone; starting it again resumes from the newest checkpoint"
	}
	return s, nil
}

// maxFile bounds the JSON files of a run: none is ever near it.
const maxFile = 16 << 20

// ReadJSON reads one JSON file of a run's folder.
func ReadJSON(path string, v any) error {
	data, err := readFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read %s: larger than %d bytes", path, maxFile)
	}
	return data, nil
}

// WriteJSON replaces a file so that a reader, or a crash at any moment, sees
// the old or the new content.
func WriteJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return WriteFile(path, append(data, '\n'))
}

// WriteFile is WriteJSON for content of any kind. Mode 0600; synced.
func WriteFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // of no effect once renamed
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// SyncDir makes the names in a folder durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
