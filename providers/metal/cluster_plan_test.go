package metal

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// plannedCluster is a cluster on the machine with this address and key, as it is
// planned, or as it is stored.
func plannedCluster(t *testing.T, address, key string, protected, stored bool) *clusterModel {
	t.Helper()
	way, diags := connect.SSH{Hop: connect.Hop{Address: address, HostKey: key}}.Object(t.Context())
	list, more := types.ListValue(way.Type(t.Context()), []attr.Value{way})
	if diags.Append(more...); diags.HasError() {
		t.Fatal(diags)
	}
	m := &clusterModel{
		ID: types.StringValue("id"), ControlPlane: list, Version: types.StringValue("1.36"), Installed: types.StringUnknown(), Domain: types.StringValue("cluster.local"),
		Patches: types.MapNull(types.StringType), APIServer: types.MapNull(types.StringType), CertSANs: types.ListNull(types.StringType),
		IgnorePreflight: types.SetNull(types.StringType), Pods: types.ListNull(types.StringType), Services: types.ListNull(types.StringType),
		Protected: types.BoolValue(protected), Access: types.ObjectNull(connect.AttributeTypes()),
	}
	if !stored {
		return m
	}
	m.Installed = types.StringValue("1.36.3")
	access, diags := connect.Connection{ID: "uid", Endpoint: "https://192.0.2.1:6443", Credential: connect.Credential{SSH: &connect.SSH{Hop: connect.Hop{Address: address, HostKey: key}}}}.Object(t.Context())
	if diags.HasError() {
		t.Fatal(diags)
	}
	m.Access = access
	return m
}

// TestClusterAhead: what a plan says of machines on which nothing can be done.
func TestClusterAhead(t *testing.T) {
	const one, other = "ssh-ed25519 AAAA", "ssh-ed25519 BBBB"
	for _, test := range []struct {
		name        string
		left        string // of a cluster that stoke did not make
		was, is     *clusterModel
		anew        bool
		err, warned string
	}{
		{"a machine with remains", "/etc/kubernetes/pki/ca.crt", nil, plannedCluster(t, "192.0.2.1", one, true, false), false, "parts of a foreign cluster", ""},
		{"a cluster that is gone", "", plannedCluster(t, "192.0.2.1", one, true, true), plannedCluster(t, "192.0.2.1", one, true, true), false, "does not make another one", ""},
		{"one that is gone, and is to be unprotected", "", plannedCluster(t, "192.0.2.1", one, true, true), plannedCluster(t, "192.0.2.1", one, false, true), false, "", "takes deletion_protection away and does nothing else"},
		{"one that is gone, and is not protected", "", plannedCluster(t, "192.0.2.1", one, false, true), plannedCluster(t, "192.0.2.1", one, false, true), false, "does not make another one", ""},
		{"another cluster on its machine", "/etc/kubernetes/pki/ca.crt", plannedCluster(t, "192.0.2.1", one, false, true), plannedCluster(t, "192.0.2.1", one, false, true), true, "", ""},
		{"another machine with remains", "/etc/kubernetes/pki/ca.crt", plannedCluster(t, "192.0.2.1", one, false, true), plannedCluster(t, "192.0.2.2", other, false, true), true, "parts of a foreign cluster", ""},
		{"another machine", "", plannedCluster(t, "192.0.2.1", one, false, true), plannedCluster(t, "192.0.2.2", other, false, true), true, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &hosttest.Machine{Answer: func(cmd host.Command) (hosttest.Answer, bool) {
				if len(cmd.Args) < 3 || !strings.HasPrefix(cmd.Args[2], "# ") {
					return hosttest.Answer{}, false
				}
				if strings.HasPrefix(cmd.Args[2], "# observe Kubernetes") {
					said := "kubeadm\t\nkubelet\t\nactive\tinactive\nenabled\t\n"
					if test.left != "" {
						said += "there\t" + test.left + "\n"
					}
					return hosttest.Answer{Stdout: said + "end\n"}, true
				}
				return hosttest.Answer{Stdout: "os\tdebian\napt\tamd64\nend\n"}, strings.HasPrefix(cmd.Args[2], "# observe packages")
			}}
			r := &clusterResource{life[clusterModel, *clusterModel]{settings: &settings{shared: newShared()}}}
			way, err := test.is.leads(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var diags diag.Diagnostics
			if _, err := r.lookAhead(t.Context(), m, way, test.was, test.is, test.anew, &diags); err != nil {
				t.Fatal(err)
			}
			said := map[diag.Severity]string{}
			for _, d := range diags {
				said[d.Severity()] += d.Summary() + ": " + d.Detail() + "\n"
			}
			for severity, want := range map[diag.Severity]string{diag.SeverityError: test.err, diag.SeverityWarning: test.warned} {
				if got := said[severity]; (want == "") != (got == "") || !strings.Contains(got, want) {
					t.Errorf("%s: %q, want %q", severity, got, want)
				}
			}
		})
	}
}
