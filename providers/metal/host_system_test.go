package metal

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
	"github.com/stokehq/stoke/providers/metal/system"
)

// TestUnknownNames: a user whom nothing is going to make is an error already while
// planning; one whom a package may make is a warning.
func TestUnknownNames(t *testing.T) {
	declares := func(names ...string) *hostModel {
		m := &hostModel{}
		if names != nil {
			all := map[string]attr.Value{}
			for _, n := range names {
				all[n] = types.StringValue("")
			}
			m.Packages = types.MapValueMust(types.StringType, all)
		}
		return m
	}
	with := func(m, prior *hostModel) *hostModel { m.prior = prior; return m }
	spec := system.Spec{Timezone: "Etc/UTC", Files: map[string]system.File{"/etc/a": {Owner: "prometheus", Group: "root"}}}
	for _, c := range []struct {
		name  string
		model *hostModel
		want  diag.Severity
	}{
		{"no packages", declares(), diag.SeverityError},
		{"a new machine with packages", declares("prometheus"), diag.SeverityWarning},
		{"packages that are there", with(declares("prometheus"), declares("prometheus")), diag.SeverityError},
		{"one more package", with(declares("jq", "prometheus"), declares("jq")), diag.SeverityWarning},
	} {
		var diags diag.Diagnostics
		c.model.unknownNames(&diags, spec, system.Facts{Unknown: map[string]bool{"user prometheus": true}})
		if len(diags) != 1 || diags[0].Severity() != c.want {
			t.Errorf("%s: %v", c.name, diags)
		}
		diags = nil
		if c.model.unknownNames(&diags, spec, system.Facts{}); len(diags) > 0 {
			t.Errorf("%s: %v", c.name, diags)
		}
	}
}

// machineThatDeclares is a machine with nothing but folders, and what its record
// says that is declared.
func machineThatDeclares(t *testing.T, said string) (*hosttest.Tree, *host.Record, *hostModel) {
	t.Helper()
	m, want := hosttest.NewTree(t), &hostModel{}
	rec, err := host.NewRecord(t.Context(), m, hostRecord, "id", "metal_host.a")
	if err == nil {
		err = rec.Declare(t.Context(), json.RawMessage(said))
	}
	if _, ok := loadDeclaredFromHost(t.Context(), rec, hostSchema(), want); err != nil || !ok {
		t.Fatalf("%v: %s", err, said)
	}
	return m, rec, want
}

// TestNoTimeService: a plan for a machine where nothing could keep the clock right
// fails, unless it installs something that does.
func TestNoTimeService(t *testing.T) {
	for said, fails := range map[string]bool{
		`{"time_sync": {}}`:                                          true,
		`{"time_sync": {}, "packages": {"jq": {}}}`:                  true,
		`{"time_sync": {"service": "chrony"}}`:                       true,
		`{"time_sync": {}, "packages": {"chrony": {}}}`:              false,
		`{"timezone": "Etc/UTC", "packages": {"systemd-repart":{}}}`: false,
	} {
		m, _, want := machineThatDeclares(t, said)
		m.Sh(`mkdir -p /usr/share/zoneinfo/Etc; touch /usr/share/zoneinfo/Etc/UTC; ln -s /usr/share/zoneinfo/Etc/UTC /etc/localtime`)
		var diags diag.Diagnostics
		systemSection{}.changes(t.Context(), m, want, &diags)
		if got := failed(diags); (got != nil) != fails || fails && !strings.Contains(got.Error(), "no time service: install one, such as packages = { chrony = {} }") {
			t.Errorf("%s: %v", said, diags)
		}
		if !fails {
			continue
		}
		m.Sh(`echo "active enabled" >/run/units/chrony.service`)
		diags = nil
		if (systemSection{}).changes(t.Context(), m, want, &diags); len(diags) > 0 {
			t.Errorf("%s, with chrony: %v", said, diags)
		}
	}
}

// A node whose machine was renamed by hand may get its name back.
func TestNodeName(t *testing.T) {
	part := factsSection{&settings{shared: newShared()}}
	cluster := draintest.New(t, nil)
	cluster.AddNode("a")
	if name := part.nodeName(t.Context(), newNodeMachine(cluster, "a")); name != "a" {
		t.Errorf("the node is %q", name)
	}
	if name := part.nodeName(t.Context(), &hosttest.Machine{}); name != "" {
		t.Errorf("no node is %q", name)
	}
}

// TestNameFirst: the host name is set before anything else, because what comes asks
// sudo, which takes long where it does not resolve; here the machine has no apt.
func TestNameFirst(t *testing.T) {
	m, rec, want := machineThatDeclares(t, `{"hostname": "declared", "packages": {"jq": {}}}`)
	m.Sh(`echo before >/etc/hostname; printf before >/proc/sys/kernel/hostname; echo "127.0.0.1 localhost" >/etc/hosts`)
	parts := sections(&settings{shared: newShared()})
	if err := applyAll(t.Context(), parts, m, rec, want); err == nil {
		t.Error("packages were installed without apt")
	}
	if got := m.Sh(`cat /etc/hostname /proc/sys/kernel/hostname; grep ^127.0.1.1 /etc/hosts`); got != "declared\ndeclared127.0.1.1\tdeclared\n" {
		t.Errorf("it is called %q", got)
	}
	if _, err := system.Restore(t.Context(), m, rec); err != nil {
		t.Fatal(err)
	}
	if got := m.Sh(`cat /etc/hostname /proc/sys/kernel/hostname /etc/hosts`); got != "before\nbefore127.0.0.1 localhost\n" {
		t.Errorf("after destroy it is called %q", got)
	}
}
