//go:build !e2e

package gke

// most is how many processes of capacity are looked at, and hours for how long;
// with the tag e2e it is all of them.
const most, hours = 30, 8
