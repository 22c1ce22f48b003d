package system

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// Regular tells whether there is a plain file.
func (f FileFacts) Regular() bool { return strings.HasPrefix(f.Type, "regular") }

// Text is what to call the content: the declared text where it holds, the
// machine's text where it may be shown and is small, else its digest.
func (f FileFacts) Text(want File) string {
	switch {
	case !f.Regular():
		return ""
	case f.Digest == want.Digest && !want.Sensitive:
		return string(want.Content)
	case !want.Sensitive && f.Content != nil && f.Digest == Digest(want.Salt, f.Content) && utf8.Valid(f.Content):
		return string(f.Content)
	case !want.Sensitive && f.Size == 0:
		return ""
	}
	return "sha256:" + f.Digest
}

// OwnerText returns the declared owner or group if it means the observed one, else
// the name of the observed one on the machine.
func OwnerText(want string, is [2]string) string {
	if want == is[0] || want == is[1] {
		return want
	}
	if is[1] == "" || is[1] == "UNKNOWN" {
		return is[0]
	}
	return is[1]
}

// ModeText is how modes are written: 0644.
func ModeText(m fs.FileMode) string { return fmt.Sprintf("%04o", uint32(m)) }

func diffFiles(want map[string]File, have map[string]FileFacts) []host.Change {
	var changes []host.Change
	for _, name := range keys(want) {
		changes = append(changes, diffFile(name, want[name], have[name])...)
	}
	return changes
}

func diffFile(name string, want File, have FileFacts) []host.Change {
	at := []string{"files", name}
	if !have.Regular() {
		is := have.Type
		if is == "absent" {
			is = ""
		}
		return []host.Change{{Fact: "file " + name, Path: at, Have: is, Want: "a file"}}
	}
	var changes []host.Change
	add := func(what, has, wants string) {
		if has != wants {
			changes = append(changes, host.Change{Fact: what + " of " + name, Path: append(slices.Clone(at), what), Have: has, Want: wants})
		}
	}
	if have.Digest != want.Digest {
		wants := "sha256:" + want.Digest
		if !want.Sensitive && want.Content != nil && len(want.Content) <= 65536 && utf8.Valid(want.Content) {
			wants = string(want.Content)
		}
		has := have.Text(want)
		if want.Sensitive { // neither digest is of use to a reader
			has, wants = "(other content)", "(sensitive)"
		}
		changes = append(changes, host.Change{Fact: "content of " + name, Path: append(slices.Clone(at), "content"), Have: has, Want: wants})
	}
	add("mode", ModeText(have.Mode), ModeText(want.Mode))
	add("owner", OwnerText(want.Owner, have.Owner), want.Owner)
	add("group", OwnerText(want.Group, have.Group), want.Group)
	return changes
}

func (f FileFacts) obstacle(name string) error {
	switch {
	case f.Fixed == name:
		return fmt.Errorf("file %s is immutable: find out who made it so, and allow it to be changed with chattr -i", name)
	case f.Fixed != "":
		return fmt.Errorf("file %s: nothing can be written into %s, which is immutable: find out who made it so, and allow it to be changed with chattr -i", name, f.Fixed)
	case f.Type == "absent" || f.Regular():
		return nil
	case f.Type == "blocked":
		return fmt.Errorf("file %s: something on the way to it is not a folder: look at it, and remove it or choose "+
			"another path", name)
	}
	return fmt.Errorf("file %s: there is a %s: look at it, and remove it or choose another path", name, f.Type)
}

const (
	fileKey = "system file "
	part    = "system" // whose folders they are
)

func applyFiles(ctx context.Context, m host.Machine, rec *host.Record, want map[string]File, have map[string]FileFacts) error {
	var wrong []error
	for _, name := range keys(want) {
		wrong = append(wrong, have[name].obstacle(name))
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	for _, name := range keys(want) {
		if len(diffFile(name, want[name], have[name])) > 0 {
			if err := applyFile(ctx, m, rec, name, want[name], have[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

func applyFile(ctx context.Context, m host.Machine, rec *host.Record, name string, want File, have FileFacts) error {
	if have.Digest == want.Digest {
		const script = `set -e; chown -- "$2" "$1"; chmod -- "$3" "$1"`
		return host.Do(ctx, m, "fix "+name, script, name, want.Owner+":"+want.Group, ModeText(want.Mode))
	}
	if Digest(want.Salt, want.Content) != want.Digest {
		return fmt.Errorf("file %s differs from the declaration, and its content is not known here: give it in the "+
			"configuration", name)
	}
	if have.Missing != "" {
		if err := rec.MakeFolder(ctx, part, path.Dir(name)); err != nil {
			return err
		}
	}
	return m.Put(ctx, ssh.File{Path: name, Content: want.Content, Mode: want.Mode, Owner: want.Owner + ":" + want.Group})
}

// replaceFile begins a script that replaces files which are others', too:
// replace FILE LENGTH takes the new content from standard input and keeps mode
// and owner.
const replaceFile = `set -e
replace() {
	t=$(mktemp "$1.XXXXXXXX")
	trap 'rm -f -- "$t"' EXIT
	cat >"$t"
	[ "$(wc -c <"$t")" -eq "$2" ] || { echo "only a part of $1 arrived" >&2; exit 1; }
	chmod 0644 "$t"
	if [ -e "$1" ]; then chmod --reference="$1" "$t"; chown --reference="$1" "$t"; fi
	sync "$t"
	mv -f -- "$t" "$1"
	trap - EXIT
}
`

// length is LENGTH, "" where nothing is to be replaced.
func length(content []byte) string {
	if content == nil {
		return ""
	}
	return strconv.Itoa(len(content))
}

func restoreFiles(ctx context.Context, rec *host.Record, want map[string]File) ([]host.Outcome, error) {
	var outcomes []host.Outcome
	var failed []error
	for _, note := range rec.Keys(fileKey) {
		name := strings.TrimPrefix(note, fileKey)
		if _, still := want[name]; still {
			continue
		}
		given, err := rec.GiveBack(ctx, note, name)
		outcomes, failed = append(outcomes, given...), append(failed, err)
	}
	return outcomes, errors.Join(failed...)
}
