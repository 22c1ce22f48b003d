package packages

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/metal/host"
)

// lockRound is how long one round trip waits for apt's lock.
const lockRound = 10 * time.Second

// waitScript waits for at most $1 seconds and lists who is left.
const waitScript = locksScript + `
export LC_ALL=C
n=0
while :; do
  l=$(locks)
  if [ -z "$l" ] || [ "$n" -ge "$1" ]; then break; fi
  sleep 1; n=$((n + 1))
done
printf '%s\n' "$l"`

// LockedError says who keeps apt from working.
type LockedError struct {
	Holder Lock
	Waited time.Duration
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("apt is in use by %s, for %s so far: let it finish (stoke breaks no lock), then apply again", e.Holder, e.Waited)
}

// wait waits until nobody uses apt.
func (a *apply) wait(ctx context.Context) error {
	rounds := max(1, int(a.want.patience()/lockRound))
	for i := range rounds {
		out, err := host.Script(ctx, a.m, waitScript, fmt.Sprint(int(lockRound/time.Second)))
		if err != nil {
			return fmt.Errorf("look for apt's lock: %w", err)
		}
		var st State
		for line := range strings.Lines(string(out)) {
			if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "lock\t"); ok {
				if err := st.addLock(strings.Split(rest, "\t")); err != nil {
					return err
				}
			}
		}
		if len(st.Locks) == 0 {
			return nil
		}
		if i == rounds-1 {
			return &LockedError{Holder: st.Locks[0], Waited: a.want.patience()}
		}
		host.Step(ctx, "%s", "wait for "+st.Locks[0].String()+" to leave apt")
	}
	return nil
}
