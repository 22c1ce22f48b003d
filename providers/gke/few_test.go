//go:build !e2e

package gke

// most is how many processes of capacity are looked at, and hours for how long;
// all says that faults meet every kind of call. With the tag e2e it is all of them.
// refusals: one of so many calls is refused; an odd number, as each second life is taken back.
const most, hours, all, refusals = 20, 8, false, 3
