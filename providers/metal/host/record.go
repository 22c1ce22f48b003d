package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// Root is stoke's folder on a machine. Nobody but root reads it.
const Root = "/var/lib/stoke"

// Record has the changes that stoke made on a machine, and the values before
// them. It is kept on the machine, one for each kind of resource, so that
// destroying works without it in the state, and so that two resources never
// manage one machine. Each value is noted before its first change, and only
// then: later changes are stoke's own work.
type Record struct {
	m    Machine
	file string

	mu   sync.Mutex
	data recordData
}

type recordData struct {
	Version int                        `json:"version"`
	ID      string                     `json:"id"`
	By      string                     `json:"by,omitempty"` // for messages: the resource's address when it was made
	Was     map[string]json.RawMessage `json:"was,omitempty"`
	// Declared is what the resource declares, in its own terms.
	Declared json.RawMessage `json:"declared,omitempty"`
}

const recordVersion = 1

// ErrNoRecord: a machine has no record of a kind.
var ErrNoRecord = errors.New("stoke manages nothing of this kind on the machine")

// OpenRecord reads the machine's record of a kind such as "host" or "firewall".
// Without one, the error is ErrNoRecord.
func OpenRecord(ctx context.Context, m Machine, kind string) (*Record, error) {
	r := &Record{m: m, file: path.Join(Root, kind, "record.json")}
	content, exists, err := ReadFile(ctx, m, r.file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read stoke's record: %w", err)
	case !exists:
		return nil, ErrNoRecord
	}
	if err := json.Unmarshal(content, &r.data); err != nil {
		return nil, fmt.Errorf("%s: %s is damaged (%w): fix it, or remove it to give up what it knows of the time before", m.Name(), r.file, err)
	}
	if r.data.Version != recordVersion {
		return nil, fmt.Errorf("%s: %s has version %d, this stoke knows %d: use a newer stoke", m.Name(), r.file, r.data.Version, recordVersion)
	}
	return r, nil
}

// NewRecord makes a machine's record. The machine must not have one of that
// kind.
func NewRecord(ctx context.Context, m Machine, kind, id, by string) (*Record, error) {
	r := &Record{m: m, file: path.Join(Root, kind, "record.json"), data: recordData{Version: recordVersion, ID: id, By: by}}
	if _, err := Run(ctx, m, "install", "-d", "-m", "0700", Root, path.Dir(r.file)); err != nil {
		return nil, fmt.Errorf("make stoke's folder: %w", err)
	}
	return r, r.save(ctx)
}

// ID is the resource that the record belongs to.
func (r *Record) ID() string { return r.data.ID }

// Owner is the address of the resource when the record was made.
func (r *Record) Owner() string { return r.data.By }

// LastDeclared is what Declare kept last, nil for nothing. It comes from the machine.
func (r *Record) LastDeclared() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.data.Declared
}

// Declare stores the declaration of the resource. It is not a note of former
// values: nothing is restored from it.
func (r *Record) Declare(ctx context.Context, declared json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var was, is bytes.Buffer
	if json.Compact(&was, r.data.Declared) == nil && json.Compact(&is, declared) == nil && bytes.Equal(was.Bytes(), is.Bytes()) {
		return nil
	}
	before := r.data.Declared
	r.data.Declared = declared
	err := r.save(ctx)
	if err != nil {
		r.data.Declared = before
	}
	return err
}

// Dir is the record's folder, for what does not fit into it.
func (r *Record) Dir() string { return path.Dir(r.file) }

// Remember writes down what was there, unless that has been done before. was is
// anything that encoding/json takes, and is not secret.
func (r *Record) Remember(ctx context.Context, key string, was any) error {
	return r.RememberAll(ctx, map[string]any{key: was})
}

// RememberAll is Remember for several things, in one step.
func (r *Record) RememberAll(ctx context.Context, was map[string]any) error {
	is := maps.Clone(was)
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(is, func(key string, _ any) bool { _, known := r.data.Was[key]; return known })
	return r.replace(ctx, is)
}

// Set is Remember for what replaces an earlier note.
func (r *Record) Set(ctx context.Context, key string, is any) error {
	return r.Replace(ctx, map[string]any{key: is})
}

// Replace sets notes and drops others, in one step. Notes that are as they were
// cost nothing.
func (r *Record) Replace(ctx context.Context, is map[string]any, drop ...string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replace(ctx, is, drop...)
}

// Forget drops notes: what they say has been restored.
func (r *Record) Forget(ctx context.Context, keys ...string) error {
	return r.Replace(ctx, nil, keys...)
}

// replace is Replace under mu. A failed write notes nothing.
func (r *Record) replace(ctx context.Context, is map[string]any, drop ...string) error {
	before, now := r.data.Was, map[string]json.RawMessage{}
	maps.Copy(now, before)
	for key, v := range is {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("note %s: %w", key, err)
		}
		var was bytes.Buffer // as it is read from a record that is indented
		if json.Compact(&was, before[key]) != nil || !bytes.Equal(was.Bytes(), b) {
			now[key] = b
		}
	}
	for _, key := range drop {
		delete(now, key)
	}
	if maps.EqualFunc(before, now, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		return nil
	}
	r.data.Was = now
	err := r.save(ctx)
	if err != nil {
		r.data.Was = before
	}
	return err
}

// ReadNote reads the note under a key; false when there is nothing.
func (r *Record) ReadNote(key string, into any) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.data.Was[key]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(b, into); err != nil {
		return false, fmt.Errorf("%s: note %q in %s cannot be read: %w", r.m.Name(), key, r.file, err)
	}
	return true, nil
}

// Keys returns the keys that begin with a prefix, sorted.
func (r *Record) Keys(prefix string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(r.data.Was)) {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Delete removes the record with its folder, and stoke's folder when it is
// empty then.
func (r *Record) Delete(ctx context.Context) error {
	_, err := Script(ctx, r.m, `rm -rf -- "$1" && { rmdir -- "$2" 2>/dev/null || :; }`, r.Dir(), Root)
	return err
}

func (r *Record) save(ctx context.Context) error {
	b, err := json.MarshalIndent(r.data, "", "  ")
	if err != nil {
		return err
	}
	if err := r.m.Put(ctx, ssh.File{Path: r.file, Content: append(b, '\n'), Mode: 0o600, Owner: "root:root", Root: true}); err != nil {
		return fmt.Errorf("write stoke's record: %w", err)
	}
	return nil
}

// backup copies a file aside, with owner, mode and times, and says "there" or
// "absent". The copy is whole before it has its name. An older copy is of a
// file that was put back, or was never noted: the present file counts.
const backup = `# keep a file
set -e
if [ ! -e "$1" ] && [ ! -L "$1" ]; then echo absent; exit 0; fi
[ -f "$1" ] || [ -L "$1" ] || { echo "$1 is no regular file" >&2; exit 1; }
rm -f -- "$2" "$2.new"; cp -a -- "$1" "$2.new"; sync; mv -f -- "$2.new" "$2"
echo there`

const restore = `# give back a file
set -e
case $3 in
absent) rm -f -- "$1" ;;
*) cp -a -- "$2" "$1.stoke-new"; mv -f -- "$1.stoke-new" "$1" ;;
esac`

// KeepFile keeps a file as it is, or notes its absence, for RestoreFile. Only
// the first time counts. The content stays on the machine.
func (r *Record) KeepFile(ctx context.Context, name string) error {
	key := "file " + name
	var was string
	if known, err := r.ReadNote(key, &was); known || err != nil {
		return err
	}
	out, err := Script(ctx, r.m, backup, name, r.copyOf(name))
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return r.Remember(ctx, key, strings.TrimSpace(string(out)))
}

// WriteFile writes a file of root's that all may read, once what was there is kept.
func (r *Record) WriteFile(ctx context.Context, name string, content []byte) error {
	if err := r.KeepFile(ctx, name); err != nil {
		return err
	}
	return r.m.Put(ctx, ssh.File{Path: name, Content: content, Mode: 0o644, Owner: "root:root", Root: true})
}

// RestoreFile puts a file back as KeepFile found it and forgets it. A file that
// was never kept is not touched. The copy is removed last: if this is
// interrupted, the file is still kept, or forgotten.
func (r *Record) RestoreFile(ctx context.Context, name string) (Outcome, error) {
	key := "file " + name
	var was string
	known, err := r.ReadNote(key, &was)
	if err != nil || !known {
		return Outcome{Fact: "file " + name, Fate: Left, Why: "stoke did not change it"}, err
	}
	if _, err := Script(ctx, r.m, restore, name, r.copyOf(name), was); err != nil {
		return Outcome{}, fmt.Errorf("restore %s: %w", name, err)
	}
	if err := r.Forget(ctx, key); err != nil {
		return Outcome{}, err
	}
	if was == "absent" {
		return Outcome{Fact: "file " + name, Fate: Removed}, nil
	}
	Remove(ctx, r.m, r.copyOf(name)) //nolint:errcheck // nobody reads it again, and it goes with the record
	return Outcome{Fact: "file " + name, Fate: Restored}, nil
}

// GiveBack puts files back, and then forgets the note that is about them.
func (r *Record) GiveBack(ctx context.Context, note string, files ...string) ([]Outcome, error) {
	var outcomes []Outcome
	for _, name := range files {
		o, err := r.RestoreFile(ctx, name)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, r.Forget(ctx, note)
}

// KeptFiles lists the files that RestoreFile knows.
func (r *Record) KeptFiles() []string {
	var names []string
	for _, k := range r.Keys("file ") {
		names = append(names, strings.TrimPrefix(k, "file "))
	}
	return names
}

// KeptAbsent reports whether KeepFile found no file.
func (r *Record) KeptAbsent(name string) bool {
	was := ""
	_, err := r.ReadNote("file "+name, &was)
	return err == nil && was == "absent"
}

// DropFile forgets what KeepFile found: it is not for this resource to put back.
func (r *Record) DropFile(ctx context.Context, name string) error {
	if err := r.Forget(ctx, "file "+name); err != nil {
		return err
	}
	return Remove(ctx, r.m, r.copyOf(name))
}

// copyOf is where a file's copy is: its path with the slashes escaped.
func (r *Record) copyOf(name string) string {
	return path.Join(r.Dir(), "was-"+strings.NewReplacer("%", "%25", "/", "%2F").Replace(name))
}
