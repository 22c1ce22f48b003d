package main

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/stokehq/stoke/plan/state/store/storetest"
)

// keep sets up where a life keeps its state: the block that says so, and what
// takes the lock of a killed run away where it does not vanish by itself.
func (l *life) keep(t *testing.T) {
	if l.where == "local" {
		l.unlock = func() {}
		return
	}
	web := &storetest.Web{ETags: true}
	server := httptest.NewServer(web)
	t.Cleanup(server.Close)
	l.backend = fmt.Sprintf(`terraform {
  backend "http" {
    address        = "%[1]s/state"
    lock_address   = "%[1]s/lock"
    unlock_address = "%[1]s/lock"
  }
}`, server.URL)
	l.unlock = func() {
		if holder := web.Holder(); holder != nil {
			l.must("force-unlock", "-force", holder.ID)
		}
	}
}
