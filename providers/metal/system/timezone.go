package system

import (
	"context"

	"github.com/stokehq/stoke/providers/metal/host"
)

const zoneKey = "system timezone"

var zoneFiles = []string{"/etc/localtime", "/etc/timezone"}

func diffTimezone(want, have string) []host.Change {
	if want == have {
		return nil
	}
	return []host.Change{{Fact: "time zone", Path: []string{"timezone"}, Have: have, Want: want}}
}

// setTimezone makes /etc/localtime point at zone $1, and /etc/timezone say so
// where there is one, as Debian has it.
const setTimezone = `# set the time zone
set -e
[ -f "/usr/share/zoneinfo/$1" ] || { echo "there is no /usr/share/zoneinfo/$1: install tzdata, or fix the name" >&2; exit 1; }
ln -sfn "/usr/share/zoneinfo/$1" /etc/localtime.stoke-new
mv -fT /etc/localtime.stoke-new /etc/localtime
if [ -f /etc/timezone ]; then
	printf '%s\n' "$1" >/etc/timezone.stoke-new
	mv -f /etc/timezone.stoke-new /etc/timezone
fi`

func applyTimezone(ctx context.Context, m host.Machine, want, have string) error {
	if want == have {
		return nil
	}
	return host.Do(ctx, m, "set the time zone", setTimezone, want)
}

func restoreTimezone(ctx context.Context, rec *host.Record) ([]host.Outcome, error) {
	var was string
	if known, err := rec.ReadNote(zoneKey, &was); !known || err != nil {
		return nil, err
	}
	for _, name := range zoneFiles {
		if _, err := rec.RestoreFile(ctx, name); err != nil {
			return nil, err
		}
	}
	return []host.Outcome{{Fact: "time zone", Fate: host.Restored}}, rec.Forget(ctx, zoneKey)
}
