package packages

import (
	"context"

	"github.com/stokehq/stoke/providers/metal/host"
)

// editedScript lists configuration files of packages that are not as the package
// brought them, by dpkg's and by ucf's checksums. $@ are the packages.
const editedScript = `# look at configuration files of packages
export LC_ALL=C
for n; do
  { dpkg-query -W -f '${Conffiles}\n' -- "$n" 2>/dev/null
    awk -v p="${n%%:*}" 'FILENAME == ARGV[1] { sum[$2] = $1; next } $1 == p && $2 in sum { print $2, sum[$2] }' /var/lib/ucf/hashfile /var/lib/ucf/registry 2>/dev/null
  } | while read -r f sum rest; do
    [ "${#sum}" = 32 ] && [ -f "$f" ] || continue
    is=$(md5sum <"$f") || exit
    [ "${is%% *}" = "$sum" ] || printf 'edited\t%s\t%s\n' "$n" "$f"
  done || exit
done
echo end`

// edited returns changed files that a purge would delete, by package.
func edited(ctx context.Context, m host.Machine, names []string) (map[string][]string, error) {
	files := map[string][]string{}
	if len(names) == 0 {
		return files, nil
	}
	err := host.Look(ctx, m, "configuration files of packages", editedScript, host.Lines{
		"edited": host.Fields(2, func(f []string) error { files[f[0]] = append(files[f[0]], f[1]); return nil }),
	}, names...)
	return files, err
}
