package filetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

const (
	logName = "creates.log"
	// header starts the first line of every file that the provider makes.
	header = "stoke-mark "
	// unmarked stands for the mark of files that were made without an
	// operation, as Terraform does.
	unmarked = "-"
)

// object is a file as it is on disk.
type object struct {
	path    string // absolute
	mark    string // "" when the file was made by somebody else
	content string
}

func (o object) sha256() string { return contentHash(o.content) }

func contentHash(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// errExists says that a file of that name is there, and isn't ours.
var errExists = errors.New("file exists")

// load reads the object at path; the error is fs.ErrNotExist when there is none.
func load(path string) (object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return object{}, err
	}
	o := object{path: path, content: string(text)}
	if line, rest, ok := bytes.Cut(text, []byte("\n")); ok && bytes.HasPrefix(line, []byte(header)) {
		o.mark, o.content = string(line[len(header):]), string(rest)
	}
	return o, nil
}

// create makes the file in one step. A file that is there already is only
// taken over when it carries the same mark; otherwise the error is errExists.
func (o object) create() error {
	if err := os.MkdirAll(filepath.Dir(o.path), 0o755); err != nil {
		return err
	}
	tmp := o.temporary()
	if err := o.writeTo(tmp); err != nil {
		return err
	}
	defer os.Remove(tmp)
	// A link, unlike a rename, never replaces a file.
	err := os.Link(tmp, o.path)
	if errors.Is(err, fs.ErrExist) {
		there, readErr := load(o.path)
		if readErr != nil || o.mark == unmarked || there.mark != o.mark {
			return errExists
		}
		err = os.Rename(tmp, o.path)
	}
	if err != nil {
		return err
	}
	return o.log("create")
}

// update replaces the content in one step. What a killed update leaves has
// the name that the next one writes to.
func (o object) update() error {
	tmp := o.temporary()
	if o.mark == "" || o.mark == unmarked {
		tmp = o.beside("update")
	}
	if err := o.writeTo(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, o.path); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return o.log("update")
}

// delete removes the file; that it is gone already is no error.
func (o object) delete() error {
	err := os.Remove(o.path)
	if errors.Is(err, fs.ErrNotExist) {
		return o.settleLog("delete")
	}
	if err != nil {
		return err
	}
	return o.log("delete")
}

// temporary is where a file of this mark is written before it appears under
// its name.
func (o object) temporary() string {
	suffix := o.mark
	if suffix == unmarked || suffix == "" {
		suffix = uuid.NewString()
	}
	return o.beside(suffix)
}

func (o object) beside(suffix string) string {
	dir, name := filepath.Split(o.path)
	return filepath.Join(dir, "."+name+"."+suffix+".tmp")
}

func (o object) writeTo(path string) error {
	mark := o.mark
	if mark == "" {
		mark = unmarked
	}
	return os.WriteFile(path, []byte(header+mark+"\n"+o.content), 0o644)
}

func (o object) line(verb string) string {
	mark := o.mark
	if mark == "" {
		mark = unmarked
	}
	return fmt.Sprintf("%s %s %s\n", verb, mark, o.path)
}

// log appends one line; the system keeps lines of different calls apart.
func (o object) log(verb string) error {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(o.path), logName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(o.line(verb))
	return errors.Join(err, f.Close())
}

// settleLog adds the line that a crash prevented: a create or delete of this
// mark that the log doesn't have. For a delete no log is begun anew.
func (o object) settleLog(verb string) error {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(o.path), logName))
	if errors.Is(err, fs.ErrNotExist) {
		if verb == "delete" {
			return nil
		}
		return o.log(verb)
	}
	if err != nil {
		return err
	}
	if strings.Contains("\n"+string(text), "\n"+o.line(verb)) {
		return nil
	}
	return o.log(verb)
}

// discardTemporary removes what a create of this mark left unfinished.
func (o object) discardTemporary() error {
	if o.mark == "" || o.mark == unmarked {
		return nil
	}
	err := os.Remove(o.temporary())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
