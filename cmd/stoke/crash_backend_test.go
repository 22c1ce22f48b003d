package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
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
	server := httptest.NewUnstartedServer(web)
	open := &openConnections{}
	open.none.L = &open.mu
	server.Config.ConnState = open.changed
	server.Start()
	t.Cleanup(server.Close)
	l.backend = fmt.Sprintf(`terraform {
  backend "http" {
    address        = "%[1]s/state"
    lock_address   = "%[1]s/lock"
    unlock_address = "%[1]s/lock"
  }
}`, server.URL)
	l.unlock = func() {
		open.wait(t, server.URL)
		if holder := web.Holder(); holder != nil {
			l.must("force-unlock", "-force", holder.ID)
		}
	}
}

// openConnections counts a server's connections: what a process asked for
// before it was killed may still be on its way.
type openConnections struct {
	mu    sync.Mutex
	none  sync.Cond
	count int
}

func (o *openConnections) changed(_ net.Conn, s http.ConnState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch s {
	case http.StateNew:
		o.count++
	case http.StateClosed, http.StateHijacked:
		o.count--
	}
	if o.count == 0 {
		o.none.Broadcast()
	}
}

// wait returns when all that was asked for so far has been answered.
// Connections are accepted in their order, so one of our own comes last.
func (o *openConnections) wait(t *testing.T, url string) {
	alone := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := alone.Get(url + "/state")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.count > 0 {
		o.none.Wait()
	}
}
