package metal

import (
	"context"
	"errors"
	"testing"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// One machine has one owner. What a create left that failed before it changed
// anything belongs to the next one of the same address.
func TestOwn(t *testing.T) {
	as := func(address string) context.Context {
		return providers.WithCall(context.Background(), &providers.Call{Address: address})
	}
	m := &hosttest.Machine{}
	for _, id := range []string{"first", "second", "second"} {
		rec, err := own(as("metal_host.a"), m, hostRecord, id)
		if err != nil || rec.ID() != id {
			t.Fatalf("own(%s) = %v, %v", id, rec, err)
		}
	}
	var taken *takenError
	if _, err := own(as("metal_host.b"), m, hostRecord, "third"); !errors.As(err, &taken) {
		t.Errorf("another resource: %v, want a takenError", err)
	}
	rec, err := host.OpenRecord(context.Background(), m, hostRecord)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Remember(context.Background(), "sysctl a", "0"); err != nil {
		t.Fatal(err)
	}
	if _, err := own(as("metal_host.a"), m, hostRecord, "third"); !errors.As(err, &taken) {
		t.Errorf("the same address, after something was changed: %v, want a takenError", err)
	}
}

// What a machine said may end in a full stop; one is enough.
func TestSentence(t *testing.T) {
	for said, want := range map[string]string{"it ended": "it ended.", "not available.": "not available."} {
		if got := sentence(errors.New(said)); got != want {
			t.Errorf("sentence(%q) = %q, want %q", said, got, want)
		}
	}
	if summary, detail := unreachable("10.0.0.1", ssh.Permanent{Err: errors.New("no.")}); summary != "Cannot log in on the machine" || detail != "10.0.0.1: no." {
		t.Errorf("%s: %s", summary, detail)
	}
}
