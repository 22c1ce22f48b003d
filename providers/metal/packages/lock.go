package packages

import (
	"context"
	"fmt"
	"time"

	"github.com/stokehq/stoke/providers/metal/host"
)

// lockRound is how long one round trip waits for apt's lock.
const lockRound = 10 * time.Second

// waitScript waits for at most $1 seconds and lists who is left.
const waitScript = "# wait for apt\n" + locksScript + `
export LC_ALL=C
n=0
while :; do
  l=$(locks)
  if [ -z "$l" ] || [ "$n" -ge "$1" ]; then break; fi
  sleep 1; n=$((n + 1))
done
printf '%s\n' "$l"; echo end`

// LockedError names the process that keeps apt from working.
type LockedError struct {
	Holder Lock
	Waited time.Duration
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("apt is in use by %s, for %s so far: let it finish (stoke breaks no lock), then apply again", e.Holder, e.Waited)
}

func (a *apply) wait(ctx context.Context) error {
	rounds := max(1, int(a.want.patience()/lockRound))
	for i := range rounds {
		var st State
		lines := host.Lines{"lock": host.Fields(3, st.addLock)}
		if err := host.Look(ctx, a.m, "apt's lock", waitScript, lines, fmt.Sprint(int(lockRound/time.Second))); err != nil {
			return err
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
