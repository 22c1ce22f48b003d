package ssh

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strconv"
)

// put writes standard input to a file in one step. A connection that breaks
// ends standard input early, which the length tells.
const put = `set -e
umask 077
t=$(mktemp -- "$1.XXXXXXXX")
trap 'rm -f -- "$t"' EXIT
cat >"$t"
[ "$(wc -c <"$t")" -eq "$4" ] || { echo "only a part of the file arrived" >&2; exit 1; }
[ -z "$3" ] || chown -- "$3" "$t"
chmod -- "$2" "$t"
sync "$t"
mv -f -- "$t" "$1"
trap - EXIT`

// File is a file to write.
type File struct {
	Path    string
	Content []byte
	Mode    fs.FileMode // permissions
	Owner   string      // user or user:group; "" leaves whoever writes it
	Root    bool
}

// Put writes a file: the old content is there until the new one is whole.
func (c *Client) Put(ctx context.Context, f File) error {
	_, err := c.Run(ctx, Command{
		Args:  []string{"sh", "-c", put, "sh", f.Path, strconv.FormatUint(uint64(f.Mode.Perm()), 8), f.Owner, strconv.Itoa(len(f.Content))},
		Stdin: bytes.NewReader(f.Content), Root: f.Root,
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", f.Path, err)
	}
	return nil
}
