package metal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/providers/metal/addons"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// Keys of the notes in a cluster's record. They say how far its life has come,
// which decides whether anything may ever be reset: see course.
const (
	noteBegun   = "cluster begun"   // kubeadm init was begun, on a machine that had nothing of a cluster
	noteHealthy = "cluster healthy" // the API server has answered
	noteWhole   = "cluster whole"   // init has come to its end, with the hash of the authority
	noteEnding  = "cluster ending"  // destroying it has begun
	noteSettled = "cluster settled" // what was carried out last
	noteBoots   = "cluster boots"   // whether the kubelet started at boot before us
	noteReady   = "cluster ready"   // what was declared last has become ready
)

// lastApply is the last applied configuration and its result. It distinguishes
// configuration changes from drift, and removed arguments from foreign objects.
type lastApply struct {
	APIServer map[string]string `json:"api_server,omitempty"`
	CertNames []string          `json:"cert_names,omitempty"`
	Kubelet   string            `json:"kubelet,omitempty"`      // hash of the declared document
	OnHost    string            `json:"kubelet_file,omitempty"` // and of the control plane's file that kubeadm made of it
	Proxy     string            `json:"kube_proxy,omitempty"`
	Patches   string            `json:"patches,omitempty"`
	Images    string            `json:"images,omitempty"`   // the registry
	Lives     string            `json:"lives,omitempty"`    // of certificates
	Uploaded  map[string]string `json:"uploaded,omitempty"` // hashes of the ConfigMaps that kubeadm made, by name
	Objects   []string          `json:"objects,omitempty"`  // keys of the objects applied in the cluster
}

// changing replaces the hash of a value while it changes: no declared value has it.
const changing = "changing"

// unsettled is the note of a change that has begun: whatever is declared after a change
// that failed differs from it, also the configuration from before.
func (s lastApply) unsettled(want lastApply) lastApply {
	for _, of := range []struct {
		is   *string
		want string
	}{{&s.Kubelet, want.Kubelet}, {&s.Proxy, want.Proxy}, {&s.Patches, want.Patches}, {&s.Images, want.Images}, {&s.Lives, want.Lives}} {
		if *of.is != of.want {
			*of.is = changing
		}
	}
	arguments := maps.Clone(want.APIServer)
	maps.Copy(arguments, s.APIServer)
	s.APIServer = arguments
	for _, name := range want.CertNames {
		if !slices.Contains(s.CertNames, name) {
			s.CertNames = append(slices.Clone(s.CertNames), name)
		}
	}
	return s
}

// notes are the record's notes about the cluster.
type notes struct {
	begun, healthy, ending bool
	ready                  bool
	whole                  string // the authority's hash; "" while init has not ended
	settled                lastApply
}

func readNotes(rec *host.Record) (n notes, err error) {
	if rec == nil {
		return n, nil
	}
	for key, into := range map[string]any{noteBegun: &n.begun, noteHealthy: &n.healthy, noteWhole: &n.whole, noteEnding: &n.ending, noteReady: &n.ready, noteSettled: &n.settled} {
		if _, failed := rec.ReadNote(key, into); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return n, err
}

// clusterLook is what a look at the control plane's machine found out.
type clusterLook struct {
	is       kubeadm.Facts
	rec      *host.Record // nil where there is none
	notes    notes
	packages packages.State
	members  []kubeadm.Member  // the cluster's nodes; nil where the API server did not say
	uploaded map[string]string // hashes of kubeadm's ConfigMaps; nil likewise
	silent   error             // why it did not
}

// lookAtCluster observes the machine, and asks the API server there for its
// nodes. A failed answer is not an error.
func (s *settings) lookAtCluster(ctx context.Context, m host.Machine, want packages.Spec) (l clusterLook, err error) {
	if l.is, err = kubeadm.Observe(ctx, m); err != nil {
		return l, err
	}
	switch rec, err := host.OpenRecord(ctx, m, clusterRecord); {
	case err == nil:
		l.rec = rec
	case !errors.Is(err, host.ErrNoRecord):
		return l, err
	}
	if l.notes, err = readNotes(l.rec); err != nil {
		return l, err
	}
	if l.packages, err = packages.Observe(ctx, m, want); err != nil {
		return l, err
	}
	if !l.is.Admin || l.is.Running {
		return l, nil
	}
	if l.silent = kubeadm.Ready(ctx, m); l.silent == nil {
		l.members, l.silent = kubeadm.Members(ctx, m)
	}
	if l.silent == nil {
		l.uploaded, l.silent = kubeadm.Uploaded(ctx, m)
	}
	if l.silent != nil && isUnreachable(l.silent) && !errors.As(l.silent, new(*kubeadm.NotReadyError)) {
		return l, l.silent
	}
	return l, nil
}

// hashes returns the hashes of the declared values.
func (s clusterSpec) hashes() (lastApply, error) {
	var err error
	hash := func(v map[string]any) string {
		h, failed := kubeadm.Hash(v)
		err = errors.Join(err, failed)
		return h
	}
	patches := map[string]any{}
	for name, text := range s.patches {
		patches[name] = text
	}
	is := lastApply{
		APIServer: s.cluster.APIServer, CertNames: s.cluster.CertNames, Kubelet: hash(s.cluster.KubeletConfiguration()),
		Proxy: hash(s.cluster.Proxy), Patches: hash(patches),
		Images: s.cluster.Images, Lives: s.cluster.CertificateLife.String() + " " + s.cluster.CALife.String(),
	}
	return is, err
}

// changes compares a control plane whose init has ended with the declaration,
// and returns the changes of its machine. It is about one whose init has ended.
func (s clusterSpec) changes(l clusterLook) ([]host.Change, error) {
	want, err := s.hashes()
	if err != nil {
		return nil, err
	}
	was := l.notes.settled
	all := slices.Concat(s.changedArguments(l.is, was), s.changedNames(l.is, was))
	if have, err := kubeadm.Hash(l.is.KubeletConfig); err != nil {
		return nil, err
	} else if was.Kubelet != want.Kubelet {
		all = append(all, host.Change{Fact: factKubelet, Path: []string{"kubelet_configuration"}, Have: "another one", Want: "as declared", Disruption: host.RestartsKubelet,
			Says: "each metal_node takes it in its turn"})
	} else if have != was.OnHost {
		all = append(all, host.Change{Fact: factKubelet, Path: []string{"kubelet_configuration"}, Have: "changed on the machine", Want: "as declared", Disruption: host.RestartsKubelet})
	}
	if was.Patches != want.Patches {
		all = append(all, host.Change{Fact: factPatches, Path: []string{"kubeadm_patches"}, Have: "others", Want: "as declared", Disruption: host.StopsAPI})
	}
	if was.Proxy != want.Proxy {
		all = append(all, host.Change{Fact: factProxy, Path: []string{"kube_proxy_configuration"}, Have: "another one", Want: "as declared", Says: "kube-proxy restarts, node by node"})
	}
	if was.Images != want.Images {
		all = append(all, host.Change{Fact: factImages, Path: []string{"image_repository"}, Have: was.Images, Want: want.Images, Disruption: host.StopsAPI, Says: "kube-proxy and CoreDNS restart"})
	}
	if was.Lives != want.Lives {
		all = append(all, host.Change{Fact: factLives, Have: "others", Want: "as declared", Says: "certificates have them that are made from then on"})
	}
	if l.uploaded != nil {
		for _, name := range slices.Sorted(maps.Keys(was.Uploaded)) {
			if l.uploaded[name] != was.Uploaded[name] {
				all = append(all, host.Change{Fact: factUploaded + name, Have: "missing, or changed", Want: "as declared"})
			}
		}
	}
	if !l.is.KubeletActive || !l.is.KubeletEnabled {
		all = append(all, host.Change{Fact: factService, Have: "stopped", Want: "running"})
	}
	if l.is.SuperAdmin {
		all = append(all, host.Change{Fact: factSuperAdmin, Have: "there", Want: "removed"})
	}
	for _, member := range l.members {
		if member.Name == l.is.NodeName && member.Reserved() == s.node.Schedulable {
			have, want := "takes workloads", "takes none"
			if s.node.Schedulable {
				have, want = want, have
			}
			all = append(all, host.Change{Fact: factReserved, Path: []string{"schedulable"}, Have: have, Want: want})
		}
	}
	return all, nil
}

// Facts of a cluster, as people call them.
const (
	factKubelet    = "the kubelet's configuration"
	factPatches    = "patches of kubeadm"
	factProxy      = "kube-proxy's configuration"
	factImages     = "the registry of images"
	factLives      = "lives of certificates"
	factUploaded   = "the ConfigMap "
	factOperators  = "rights of the group " + kubernetes.Operators
	factService    = "the kubelet"
	factSuperAdmin = "super-admin.conf"
	factReserved   = "the control plane's node"
	factArgument   = "the API server's argument "
	factName       = "the API server's certificate for "
	factAPI        = "the API server"
	factCluster    = "the control plane"
)

// changedArguments compares the arguments of the API server.
func (s clusterSpec) changedArguments(is kubeadm.Facts, was lastApply) []host.Change {
	var all []host.Change
	want := s.cluster.APIServer
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have := is.APIServer[name]; !slices.Equal(have, []string{want[name]}) {
			all = append(all, host.Change{Fact: factArgument + name, Path: []string{"api_server_args", name}, Have: strings.Join(have, " "), Want: want[name], Disruption: host.StopsAPI})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was.APIServer)) {
		if _, declared := want[name]; !declared {
			all = append(all, host.Change{Fact: factArgument + name, Path: []string{"api_server_args", name}, Have: was.APIServer[name], Disruption: host.StopsAPI})
		}
	}
	return all
}

const apiServerCertificate = "/etc/kubernetes/pki/apiserver.crt"

// changedNames compares those in the API server's certificate.
func (s clusterSpec) changedNames(is kubeadm.Facts, was lastApply) []host.Change {
	var all []host.Change
	have := is.Certificates[apiServerCertificate].Names
	for _, name := range s.cluster.CertNames {
		if !slices.Contains(have, name) {
			all = append(all, host.Change{Fact: factName + name, Path: []string{"cert_sans"}, Want: name, Disruption: host.StopsAPI})
		}
	}
	for _, name := range was.CertNames {
		if !slices.Contains(s.cluster.CertNames, name) {
			all = append(all, host.Change{Fact: factName + name, Path: []string{"cert_sans"}, Have: name, Disruption: host.StopsAPI})
		}
	}
	return all
}

// expires is when the first certificate of the control plane does, and which.
// The kubelet renews its own.
func expires(is kubeadm.Facts) (which string, at time.Time) {
	for _, name := range slices.Sorted(maps.Keys(is.Certificates)) {
		c := is.Certificates[name]
		if strings.HasPrefix(name, "/var/lib/kubelet/") || strings.HasSuffix(name, "/kubelet.conf") || c.Expires.IsZero() {
			continue
		}
		if at.IsZero() || c.Expires.Before(at) {
			which, at = name, c.Expires
		}
	}
	return which, at
}

// connection is how the cluster is reached.
func (s *settings) connection(ctx context.Context, m host.Machine, way connect.SSH, endpoint, id string) (connect.Connection, error) {
	ca, exists, err := host.ReadFile(ctx, m, "/etc/kubernetes/pki/ca.crt")
	if err != nil || !exists {
		return connect.Connection{}, errors.Join(fmt.Errorf("%s has no /etc/kubernetes/pki/ca.crt", m.Name()), err)
	}
	return connect.Connection{ID: id, Endpoint: "https://" + endpoint, CA: string(ca), Credential: connect.Credential{SSH: &way}}, nil
}

// withCluster works in the cluster, as one of its operators.
func (s *settings) withCluster(ctx context.Context, c connect.Connection, work func(*live.Cluster) error) error {
	pool := &kubernetes.Pool{SSH: s.ssh, Agent: s.clusters.Agent}
	defer pool.Close()
	client, err := pool.Get(ctx, c)
	if err != nil {
		return &clusterError{c.Endpoint, err}
	}
	return work(live.New(client))
}

// insideNew is inside for a cluster that has just begun: its controller manager leads
// a while before it signs certificates.
func (s *settings) insideNew(ctx context.Context, c connect.Connection, patience time.Duration, work func(*live.Cluster) error) error {
	for end := time.Now().Add(patience); ; {
		err := s.withCluster(ctx, c, work)
		if !kubernetes.Unsigned(err) || time.Now().After(end) {
			return err
		}
		host.Step(ctx, "waiting until kube-controller-manager signs certificates")
		if err := host.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// differing names the objects in the cluster that are not as declared.
func (s *settings) differing(ctx context.Context, c connect.Connection, want addons.Spec) (titles []string, err error) {
	objects, err := want.Objects()
	if err != nil {
		return nil, err
	}
	err = s.withCluster(ctx, c, func(cluster *live.Cluster) error {
		var keys []object.Key
		keys, err = addons.Diff(ctx, cluster, objects)
		for _, k := range keys {
			titles = append(titles, k.Title())
		}
		return err
	})
	return titles, err
}
