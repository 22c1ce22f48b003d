package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
)

// put writes standard input to a file in one step. A connection that breaks
// ends standard input early, which the length tells. Leftovers of an earlier
// attempt are removed first. The folder is synced, too: what follows may lean
// on the file being there after a power cut.
const put = `# write a file
set -e
umask 077
d=${1%/*}/ b=${1##*/}
if [ -d "$1" ]; then echo "$1 is a folder" >&2; exit 1; fi
rm -f -- "$d.$b.stoke-"????????
t=$(mktemp -- "$d.$b.stoke-XXXXXXXX")
trap 'rm -f -- "$t"' EXIT
cat >"$t"
[ "$(wc -c <"$t")" -eq "$4" ] || { echo "only a part of the file arrived" >&2; exit 1; }
[ -z "$3" ] || chown -- "$3" "$t"
chmod -- "$2" "$t"
sync -- "$t"
mv -f -- "$t" "$1"
trap - EXIT
sync -- "$d"`

// File is a file to write.
type File struct {
	Path    string // absolute
	Content []byte
	// Open is Content for content that is too large for memory, of Size bytes. It
	// is called once for each try, and its result is closed.
	Open  func() (io.ReadCloser, error)
	Size  int64
	Mode  fs.FileMode // permissions, with fs.ModeSetuid, fs.ModeSetgid and fs.ModeSticky
	Owner string      // user or user:group; "" leaves whoever writes it
	Root  bool
}

// Put writes a file: the old content is there until the new one is whole.
func (c *Client) Put(ctx context.Context, f File) error {
	if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" {
		return Permanent{fmt.Errorf("write %q: the path is not absolute and plain", f.Path)}
	}
	var content io.Reader = bytes.NewReader(f.Content)
	size := int64(len(f.Content))
	if f.Open != nil {
		stream, err := f.Open()
		if err != nil {
			return Permanent{fmt.Errorf("write %s: %w", f.Path, err)}
		}
		defer stream.Close()
		content, size = stream, f.Size
	}
	_, err := c.Run(ctx, Command{
		Args:  []string{"sh", "-c", put, "sh", f.Path, octal(f.Mode), f.Owner, strconv.FormatInt(size, 10)},
		Stdin: content, Root: f.Root,
	})
	var failed *CommandError
	if errors.As(err, &failed) {
		failed.Command = "write " + f.Path // the script is useless without the content
		return failed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.Path, err)
	}
	return nil
}

// octal is a mode as chmod takes it.
func octal(mode fs.FileMode) string {
	bits := uint64(mode.Perm())
	for _, special := range []struct {
		is  fs.FileMode
		bit uint64
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if mode&special.is != 0 {
			bits |= special.bit
		}
	}
	return strconv.FormatUint(bits, 8)
}
