package plan

import (
	"maps"
	"slices"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

// users is the reverse dependency graph, so that an object is destroyed after
// its users. It follows the state, which records the inputs of objects, and not
// the configuration. Names are resource addresses without keys.
type users struct {
	of   map[string][]string
	data map[string]bool
}

// findUsers collects the users of all that is stored, by what their objects and
// their provider's configuration depend on. A name that the state lists and
// has no object of depends on what the configuration says.
func (p *planner) findUsers() *users {
	u := &users{of: map[string][]string{}, data: map[string]bool{}}
	certain, guessed, written := map[string][]string{}, guesses{}, newWritten(p.req.Root)
	configured := map[[2]string]bool{} // by user and provider
	var names []string
	for _, addr := range p.prior.Instances() {
		user := Keyless(addr.Resource)
		u.data[user] = addr.Mode == address.Data
		add := func(o *state.Object) {
			certain[user] = append(certain[user], o.Dependencies...)
			owner := p.owners[o.Provider]
			if owner == nil || configured[[2]string{user, o.Provider}] {
				return
			}
			configured[[2]string{user, o.Provider}] = true
			for _, r := range owner.Node.Resources() {
				certain[user] = append(certain[user], Keyless(r))
			}
			for _, m := range owner.Node.EmptyCalls() {
				guessed[user] = append(guessed[user], written.outputs(keylessModule(m))...)
			}
		}
		if cur := p.prior.Current(addr); cur != nil {
			add(cur)
		}
		for _, o := range p.prior.Deposed(addr) {
			add(o)
		}
	}
	for user, list := range certain {
		slices.Sort(list)
		certain[user] = slices.Compact(list)
		names = append(append(names, certain[user]...), guessed[user]...)
	}
	for i := 0; i < len(names); i++ { // names grows
		if _, stored := u.data[names[i]]; stored || guessed[names[i]] != nil {
			continue
		}
		guessed[names[i]] = append([]string{}, written.needs(names[i])...)
		names = append(names, guessed[names[i]]...)
	}
	guessed.withoutRings(certain)
	for _, lists := range []map[string][]string{certain, guessed} {
		for _, user := range slices.Sorted(maps.Keys(lists)) {
			for _, dep := range lists[user] {
				if dep != user {
					u.of[dep] = append(u.of[dep], user)
				}
			}
		}
	}
	return u
}

// afterUsers makes every deletion wait for the users of the object: deleted
// users are removed first, and remaining users are updated first.
func (o *ordering) afterUsers() {
	o.users = o.p.findUsers()
	late := map[string]int32{} // by resource: the barrier before plain deletions
	for _, c := range o.result.Changes {
		op, ok := o.del[c]
		if !ok {
			continue
		}
		name := Keyless(c.Addr.Resource)
		if len(o.users.of[name]) == 0 {
			continue
		}
		gone := o.afterDeletions(name)
		switch c.Action {
		case DeleteThenCreate: // users are brought up to date only once the new one is there
			o.wait(op, gone)
			continue
		case CreateThenDelete:
			o.wait(op, gone)
			o.wait(op, o.detached(name))
			continue
		}
		before, ok := late[name]
		if !ok {
			before = o.add(Barrier, -1)
			late[name] = before
			o.wait(before, gone)
			if detached := o.detached(name); detached >= 0 {
				o.rather = append(o.rather, preference{op: before, after: detached})
			}
		}
		o.wait(op, before)
	}
}

func (o *ordering) wait(op, before int32) {
	if before >= 0 {
		o.ops[op].After = append(o.ops[op].After, before)
	}
}

// afterDeletions returns the operation that follows all deletions of users of a resource,
// or -1. A user without deletions is replaced by its own users.
func (o *ordering) afterDeletions(name string) int32 {
	return o.joinUsers(o.goneBefore, name, func(user string) (int32, bool) {
		if op, ok := o.dels[user]; ok {
			return op, false
		}
		return -1, true
	})
}

// detached returns the operation that follows the updates of a resource's
// remaining users, or -1. Data sources and users without a remaining object are
// replaced by their own users.
func (o *ordering) detached(name string) int32 {
	return o.joinUsers(o.detachedBefore, name, func(user string) (int32, bool) {
		op, ok := o.puts[user]
		if !ok {
			op = -1
		}
		_, goes := o.dels[user]
		return op, o.users.data[user] || !goes && !o.p.related.objects[user]
	})
}

// joinUsers joins what each user of a resource brings along: an operation (or -1)
// and whether its own users count, too.
func (o *ordering) joinUsers(memo map[string]int32, name string, brings func(user string) (op int32, on bool)) int32 {
	if op, ok := memo[name]; ok {
		return op
	}
	memo[name] = -1 // users in a ring, which states can tell of that were changed in parts, go in any order
	var before []int32
	for _, user := range o.users.of[name] {
		op, on := brings(user)
		if op >= 0 {
			before = append(before, op)
		}
		if !on {
			continue
		}
		if op = o.joinUsers(memo, user, brings); op >= 0 {
			before = append(before, op)
		}
	}
	memo[name] = o.join(before)
	return memo[name]
}

// join returns one operation that represents several, or -1 for none.
func (o *ordering) join(before []int32) int32 {
	switch len(before) {
	case 0:
		return -1
	case 1:
		return before[0]
	}
	op := o.add(Barrier, -1)
	o.ops[op].After = before
	return op
}
