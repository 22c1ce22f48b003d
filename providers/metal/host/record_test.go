package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

func TestRecord(t *testing.T) {
	ctx := context.Background()
	m := &hosttest.Machine{Files: map[string]ssh.File{"/etc/a": {Path: "/etc/a", Content: []byte("first")}}}
	if _, err := host.OpenRecord(ctx, m, "host"); !errors.Is(err, host.ErrNoRecord) {
		t.Fatalf("OpenRecord without one: %v", err)
	}
	r, err := host.NewRecord(ctx, m, "host", "id1", "metal_host.a")
	if err != nil {
		t.Fatal(err)
	}
	for _, was := range []string{"0", "1"} {
		if err := r.Remember(ctx, "sysctl a", was); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/etc/a", "/etc/b"} {
		if err := r.KeepFile(ctx, name); err != nil {
			t.Fatal(err)
		}
		m.Put(ctx, ssh.File{Path: name, Content: []byte("ours")})
		if err := r.KeepFile(ctx, name); err != nil {
			t.Fatal(err)
		}
	}

	r, err = host.OpenRecord(ctx, m, "host") // another run of stoke
	if err != nil {
		t.Fatal(err)
	}
	var was string
	if ok, err := r.ReadNote("sysctl a", &was); !ok || err != nil || was != "0" || r.ID() != "id1" || r.Owner() != "metal_host.a" {
		t.Errorf("read back %q %v %v, id %q by %q", was, ok, err, r.ID(), r.Owner())
	}
	if diff := cmp.Diff([]string{"/etc/a", "/etc/b"}, r.KeptFiles()); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]host.Outcome{
		"/etc/a": {Fact: "file /etc/a", Fate: host.Restored}, "/etc/b": {Fact: "file /etc/b", Fate: host.Removed},
	} {
		if got, err := r.RestoreFile(ctx, name); err != nil || got != want {
			t.Errorf("RestoreFile(%s) = %v, %v; want %v", name, got, err, want)
		}
	}
	if string(m.Files["/etc/a"].Content) != "first" {
		t.Errorf("/etc/a is %q", m.Files["/etc/a"].Content)
	}
	if _, there := m.Files["/etc/b"]; there {
		t.Error("/etc/b was not there before and is still there")
	}
	if len(r.KeptFiles()) != 0 {
		t.Errorf("still kept: %v", r.KeptFiles())
	}
	if err := r.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	if len(m.Files) != 1 {
		t.Errorf("left: %v", m.Files)
	}
}

func TestDamagedRecord(t *testing.T) {
	for _, content := range []string{"", "{", `{"version":9}`} {
		m := &hosttest.Machine{Files: map[string]ssh.File{host.Root + "/host/record.json": {Content: []byte(content)}}}
		if _, err := host.OpenRecord(context.Background(), m, "host"); err == nil || errors.Is(err, host.ErrNoRecord) {
			t.Errorf("%q: %v", content, err)
		}
	}
}
