package metal

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

// headMachine answers as a control plane does, and keeps what is done to it.
type headMachine struct {
	hosttest.Machine
	silent bool // its API server does not answer until a static pod is written
	did    []string
}

func newHead() *headMachine {
	h := &headMachine{}
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	pod := "file\t" + encode("spec: {containers: [{command: [kube-apiserver]}]}") + "\nprocess\t" + encode("kube-apiserver\n") + "\nend\n"
	h.Answer = func(cmd host.Command) (hosttest.Answer, bool) {
		if len(cmd.Args) < 3 || !strings.HasPrefix(cmd.Args[2], "# ") {
			return hosttest.Answer{}, false
		}
		what, _, _ := strings.Cut(strings.TrimPrefix(cmd.Args[2], "# "), "\n")
		switch what {
		case "ask the API server whether it is ready":
			if h.silent {
				return hosttest.Answer{Stdout: "connection refused", Status: 1}, true
			}
			return hosttest.Answer{Stdout: "ok"}, true
		case "look at the API server that runs":
			return hosttest.Answer{Stdout: pod}, true
		case "ask whether the controller manager works", "follow kubeadm":
			return hosttest.Answer{}, true
		case "observe Kubernetes":
			return hosttest.Answer{Stdout: "kubeadm\tv1.36.3\nkubelet\tv1.36.3\nactive\tactive\nenabled\tenabled\nend\n"}, true
		case "look at what kubeadm keeps in the cluster":
			return hosttest.Answer{Stdout: "map\tkubelet-config\t{}\nend\n"}, true
		case "repeat a part of kubeadm init":
			what = strings.Join(cmd.Args[5:], " ")
			h.silent = h.silent && !strings.HasPrefix(what, "init phase control-plane")
		case "write the cluster's configuration of the kubelet on this node":
			what = strings.Join(append([]string{"fetch"}, cmd.Args[4:]...), " ")
		}
		if !cmd.Look {
			h.did = append(h.did, strings.TrimPrefix(what, "init phase "))
		}
		return hosttest.Answer{}, true
	}
	return h
}

// workOn is an apply on a control plane that a look has found so.
func workOn(t *testing.T, h *headMachine, s clusterSpec, l clusterLook) *clusterWork {
	t.Helper()
	rec, err := host.NewRecord(t.Context(), &h.Machine, clusterRecord, "id", "metal_cluster.lab")
	if err != nil {
		t.Fatal(err)
	}
	config, err := s.cluster.Init(s.node, kubeadm.NewToken())
	if err != nil {
		t.Fatal(err)
	}
	h.did = nil
	return &clusterWork{m: h, s: &settings{shared: newShared()}, model: &clusterModel{}, spec: s, look: l, rec: rec, config: config}
}

// TestClusterRepair: an API server that does not answer gets its static pods again.
// A certificate that is there stays, though names are declared that it has not.
func TestClusterRepair(t *testing.T) {
	for _, test := range []struct {
		name   string
		silent bool
		cert   bool
		want   []string
	}{
		{"it answers", false, true, nil},
		{"it does not answer", true, true, []string{"etcd local", "control-plane all"}},
		{"its certificate is gone", true, false, []string{"certs apiserver", "etcd local", "control-plane all"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHead()
			h.silent = test.silent
			s := declaredCluster(t, nil)
			l := carriedOut(t, s)
			if !test.cert {
				delete(l.is.Certificates, apiServerCertificate)
			}
			w := workOn(t, h, s, l)
			if err := w.repair(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want := append(test.want, "bind the operators' group, and remove the credential beyond all rights"); !slices.Equal(h.did, want) {
				t.Errorf("did %q, want %q", h.did, want)
			}
		})
	}
}

// TestClusterFinish: init's phases go on from what a kubeadm that was killed has
// left, and nothing is ever reset.
func TestClusterFinish(t *testing.T) {
	before := []string{"certs all", "kubeconfig all", "etcd local", "control-plane all", "kubelet-start"}
	after := []string{"upload-config all", "mark-control-plane", "bootstrap-token", "kubelet-finalize all", "addon all"}
	halves := "remove what half of was written"
	for _, test := range []struct {
		name   string
		silent bool
		is     kubeadm.Facts
		want   []string
	}{
		{"the API server answers", false, kubeadm.Facts{Etcd: true}, after},
		{"certificates were being made", true, kubeadm.Facts{}, slices.Concat([]string{halves}, before, after)},
		{"etcd has data", true, kubeadm.Facts{Etcd: true}, slices.Concat(before, after)},
		{"a name was declared since", true, kubeadm.Facts{Etcd: true, Certificates: map[string]kubeadm.Certificate{apiServerCertificate: {}}},
			slices.Concat([]string{"remove the API server's certificate, so that kubeadm makes a new one", "certs apiserver"}, before, after)},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHead()
			h.silent = test.silent
			s := declaredCluster(t, nil)
			s.cluster.CertNames = []string{"new.example"}
			w := workOn(t, h, s, clusterLook{is: test.is, notes: notes{begun: true}})
			if err := w.finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(h.did) < len(test.want) || !slices.Equal(h.did[:len(test.want)], test.want) {
				t.Errorf("did %q, want %q first", h.did, test.want)
			}
			if slices.ContainsFunc(h.did, func(what string) bool { return strings.Contains(what, "reset") }) {
				t.Errorf("a reset: %q", h.did)
			}
			n, err := readNotes(w.rec)
			if err != nil || !n.healthy || n.settled.Uploaded["kubelet-config"] == "" {
				t.Errorf("notes %+v, %v", n, err)
			}
		})
	}
}

// TestClusterChanged: which of kubeadm's phases carry out a change.
func TestClusterChanged(t *testing.T) {
	for _, test := range []struct {
		name, fact, patches string
		want                []string
	}{
		{"an argument", factArgument + "v", "", []string{"control-plane apiserver", "upload-config kubeadm"}},
		{"a name", factName + "a", "", []string{"remove the API server's certificate, so that kubeadm makes a new one", "certs apiserver", "upload-config kubeadm"}},
		{"the kubelet's configuration", factKubelet, "", []string{"upload-config kubelet", "fetch", "restart the kubelet", "upload-config kubeadm"}},
		{"the kubelet's configuration with patches", factKubelet, "/p", []string{"upload-config kubelet", "fetch --patches=/p", "restart the kubelet", "upload-config kubeadm"}},
		{"the ConfigMap of kubelets", factUploaded + kubeadm.KubeletMap, "", []string{"upload-config kubeadm", "upload-config kubelet"}},
		{"kube-proxy's configuration", factProxy, "", []string{"upload-config kubeadm", "addon kube-proxy", "have kube-proxy read its configuration"}},
		{"the ConfigMap of kube-proxy", factUploaded + kubeadm.ProxyMap, "", []string{"upload-config kubeadm", "addon kube-proxy", "have kube-proxy read its configuration"}},
		{"the registry", factImages, "", []string{"etcd local", "control-plane all", "upload-config kubeadm", "addon coredns", "addon kube-proxy", "have kube-proxy read its configuration"}},
		{"lives of certificates", factLives, "", []string{"upload-config kubeadm"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHead()
			s := declaredCluster(t, nil)
			s.node.Patches = test.patches
			w := workOn(t, h, s, carriedOut(t, s))
			if err := w.changed(t.Context(), []host.Change{{Fact: test.fact}}); err != nil {
				t.Fatal(err)
			}
			if len(h.did) < len(test.want) || !slices.Equal(h.did[:len(test.want)], test.want) || strings.HasPrefix(h.did[len(test.want)], "upload-config") || strings.HasPrefix(h.did[len(test.want)], "addon") {
				t.Errorf("did %q, want %q first", h.did, test.want)
			}
		})
	}
}

// TestClusterExplained: what failed while something was waited for names the file
// with the logs. What did not, keeps none.
func TestClusterExplained(t *testing.T) {
	h := newHead()
	s := declaredCluster(t, nil)
	w := workOn(t, h, s, carriedOut(t, s))
	late := errors.New("too late")
	if err := w.explainError(t.Context(), late); err != late || len(h.did) > 0 {
		t.Errorf("%v after %q", err, h.did)
	}
	w.waited = true
	if err := w.explainError(t.Context(), host.ErrStopped); !errors.Is(err, host.ErrStopped) || len(h.did) > 0 {
		t.Errorf("%v after %q", err, h.did)
	}
	err := w.explainError(t.Context(), late)
	if !errors.Is(err, late) || !strings.Contains(err.Error(), "/var/lib/stoke/cluster/failure.log on 192.0.2.1") || !slices.Equal(h.did, []string{"keep the last that the cluster's programs said"}) {
		t.Errorf("%v after %q", err, h.did)
	}
}

// TestClusterUnprotected: what is left of a cluster can be given up: deletion
// protection goes though nothing else can be done.
func TestClusterUnprotected(t *testing.T) {
	prior := &clusterModel{Protected: types.BoolValue(true), Installed: types.StringValue("1.36.3"), NodeName: types.StringValue("head")}
	for protected, want := range map[types.Bool]bool{types.BoolValue(true): false, types.BoolUnknown(): false, types.BoolValue(false): true} {
		if got := (&clusterModel{Protected: protected}).unprotects(prior); got != want {
			t.Errorf("%s: %v", protected, got)
		}
	}
	begun := 0
	j := job[clusterModel]{prior: prior, diags: &diag.Diagnostics{}, begin: func() (*host.Record, error) { begun++; return nil, nil }}
	plan := &clusterModel{Protected: types.BoolValue(false), Installed: types.StringUnknown(), NodeName: types.StringValue("head"), Access: types.ObjectUnknown(nil), Join: types.ObjectUnknown(nil)}
	is, err := plan.unprotected(t.Context(), j)
	if err != nil || begun != 1 || is.Installed.ValueString() != "1.36.3" || is.Protected.ValueBool() || is.Access.IsUnknown() || is.Join.IsUnknown() {
		t.Errorf("%+v, %v", is, err)
	}
}

// TestClusterReplaced: -replace destroys no protected cluster that is there.
func TestClusterReplaced(t *testing.T) {
	for _, test := range []struct {
		name     string
		replaces cty.Value
		l        clusterLook
		refused  bool
	}{
		{"protected", cty.ObjectVal(map[string]cty.Value{"deletion_protection": cty.True}), clusterLook{is: kubeadm.Facts{Role: kubeadm.ControlPlane}}, true},
		{"protected, and gone", cty.ObjectVal(map[string]cty.Value{"deletion_protection": cty.True}), clusterLook{}, false},
		{"protected, and half destroyed", cty.ObjectVal(map[string]cty.Value{"deletion_protection": cty.True}), clusterLook{is: kubeadm.Facts{Role: kubeadm.ControlPlane}, notes: notes{ending: true}}, false},
		{"not protected", cty.ObjectVal(map[string]cty.Value{"deletion_protection": cty.False}), clusterLook{is: kubeadm.Facts{Role: kubeadm.ControlPlane}}, false},
		{"nothing replaced", cty.NilVal, clusterLook{is: kubeadm.Facts{Role: kubeadm.ControlPlane}}, false},
	} {
		var diags diag.Diagnostics
		test.l.protect(providers.WithCall(t.Context(), &providers.Call{Replaces: test.replaces}), &diags)
		if diags.HasError() != test.refused {
			t.Errorf("%s: %v", test.name, diags)
		}
	}
}

// TestClusterRelease: a control plane that somebody has made another release is
// not made the planned one again.
func TestClusterRelease(t *testing.T) {
	for version, refused := range map[string]bool{"v1.36.3": false, "v1.36.4": true, "v1.37.0": true, "": false, "custom": false} {
		s := declaredCluster(t, nil)
		l := carriedOut(t, s)
		l.is.Version = version
		err := workOn(t, newHead(), s, l).sameRelease(t.Context())
		if (err != nil) != refused {
			t.Errorf("%q: %v", version, err)
		}
	}
	is := kubeadm.Facts{Whole: true, Version: "v1.36.5", NodeName: "head", APIServer: map[string][]string{"advertise-address": {"192.0.2.7"}}}
	m := clusterModel{NodeName: types.StringNull(), Advertise: types.StringNull(), Installed: types.StringValue("1.36.3")}
	if m.learn(is); m.Installed.ValueString() != "1.36.5" || m.NodeName.ValueString() != "head" || m.Advertise.ValueString() != "192.0.2.7" {
		t.Errorf("%+v", m)
	}
	m = clusterModel{NodeName: types.StringValue("a"), Advertise: types.StringValue("b"), Installed: types.StringValue("1.36.3")}
	is.Version = "mine"
	if m.learn(is); m.Installed.ValueString() != "1.36.3" || m.NodeName.ValueString() != "a" || m.Advertise.ValueString() != "b" {
		t.Errorf("%+v", m)
	}
}
