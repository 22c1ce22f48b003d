//go:build !e2e

package gke

// most is how many processes of capacity are looked at, and hours for how long;
// all says that faults meet every kind of call. With the tag e2e it is all of them.
const most, hours, all = 30, 8, false
